// Compiles the .py members of archives to .pyc with the Python that will load them: Pyodide itself, in node.
// usage: node precompile.mjs RUNTIME_FOLDER < jobs.json, a list of {source, target, root, optimize}
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const COMPILE = `
import importlib.util, io, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

def compiled(name, source, root, optimize):
    # Unchecked hashes: the source isn't shipped and the archive's own SHA-256 is checked.
    code = compile(source, f"{root}/{name}", "exec", dont_inherit=True, optimize=optimize)
    return bytes(_code_to_hash_pyc(code, importlib.util.source_hash(source), False))

def compile_archive(data, root, optimize):
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            name, content = info.filename, old.read(info)
            if name.endswith(".py"):
                try:
                    name, content = name + "c", compiled(name, content, root, optimize)
                except (SyntaxError, ValueError):
                    pass
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    return target.getvalue()
`;

const runtime = resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(runtime, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: runtime });
pyodide.runPython(COMPILE);
const compileArchive = pyodide.globals.get("compile_archive");
for (const { source, target, root, optimize } of JSON.parse(readFileSync(0, "utf8"))) {
  const data = pyodide.toPy(new Uint8Array(readFileSync(source)));
  writeFileSync(target, compileArchive(data, root, optimize).toJs());
  console.log(target);
}
process.exit(0);
