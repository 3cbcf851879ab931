"""The wheel in a Pyodide that knows nothing of our page client and worker: in a window and in a module worker."""

import json
from pathlib import Path

import pytest

import pyweb
from pyweb.cli import parts, runtime
from pyweb.cli.browser_wheel import browser_wheel
from pyweb.cli.console import Progress
from pyweb.cli.server import LocalServer
from pyweb.storage import files, paths
from pyweb.storage.wheel import make_wheel

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_chat.gguf"
PAGE = """<!doctype html><title>Skerry Point</title><main><h1>Skerry Point</h1>
<p>The lighthouse of Skerry Point was built in 1884 from grey granite. It stands on a rock.</p></main>"""

INSTALL = f"""
import json, micropip
micropip.set_index_urls(base + "simple/{{package_name}}/")
await micropip.install(base + "WHEEL/pyweb-{pyweb.__version__}-py3-none-any.whl")
import pyweb
"""

ASK = (
    INSTALL
    + """
stages = []
assistant = await pyweb.load(
    base + "tiny.gguf", tokenizers=base + "tokenizers.js", on_progress=lambda stage, *_: stages.append(stage)
)
answer = await assistant.ask("What?", text="A lamp.", max_tokens=6, mode="loop")
import js
document = getattr(js, "document", None)
page = await pyweb.page_of(document if document is not None else HTML)
read = await assistant.ask("When?", page=page, max_tokens=2, mode="fixed:2")
assistant.close()
json.dumps({"ids": answer.reply_ids, "read": read.reply_ids, "title": page.title, "text": page.text,
            "stages": list(dict.fromkeys(stages)), "adapter": answer.adapter})
"""
)

WRONG_LIBRARY = (
    INSTALL
    + """
try:
    await pyweb.load(base + "tiny.gguf", tokenizers=base + "page.html")
except Exception as error:
    found = type(error).__name__, str(error)
try:
    await pyweb.load("http://")
except Exception as error:
    found += type(error).__name__,
json.dumps(found)
"""
)

IN_WINDOW = """
const [base, code, done] = arguments;
(async () => {
  const { loadPyodide } = await import(`${base}pyodide/pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: `${base}pyodide/` });
  await pyodide.loadPackage('micropip', { messageCallback() {} });
  pyodide.globals.set('base', base);
  return { result: await pyodide.runPythonAsync(code) };
})().then(done, (error) => done({ error: error.message }));
"""

IN_WORKER = """
const [base, code, done] = arguments;
const worker = new Worker(`${base}worker.js`, { type: 'module' });
worker.onmessage = ({ data }) => { worker.terminate(); done(data); };
worker.postMessage({ base, code });
"""


def foreign_lock(distribution: Path) -> tuple[bytes, dict[str, Path]]:
    """A lock as Pyodide's own, cut to what is at hand, and the files that it names."""
    lock = json.loads((distribution / runtime.LOCK).read_text())
    ours = json.loads((runtime.runtime_folder() / runtime.LOCK).read_text())["packages"]
    entries = {name: lock["packages"][name] for name in parts.LOCKED_WHEELS}
    found = {entry["file_name"]: paths.downloads() / entry["file_name"] for entry in entries.values()}
    for name in ("jinja2", "markupsafe"):
        entries[name] = ours[name]
        found[ours[name]["file_name"]] = runtime.runtime_folder() / ours[name]["file_name"]
    wheel = runtime.pypi_wheel(parts.MICROPIP, Progress())
    entry = runtime.lock_entry("micropip", parts.MICROPIP.version, ("micropip",), ())
    entries["micropip"] = entry | {"file_name": wheel.name, "sha256": files.sha256_file(wheel)}
    return json.dumps(lock | {"packages": entries}).encode(), found | {wheel.name: wheel}


@pytest.fixture(scope="module")
def foreign():
    """Base URL of somebody else's site: Pyodide as npm has it, an index of packages, our wheel, a tiny model."""
    (package,) = [package for package in parts.NPM_PACKAGES if package.name == "pyodide"]
    distribution = paths.downloads() / f"pyodide-{package.version}"
    lock, wheels = foreign_lock(distribution)
    indexed = {
        wheel.name: runtime.pypi_wheel(wheel, Progress())
        for wheel in parts.PYPI_WHEELS
        if wheel.name in ("trafilatura", "justext", "charset-normalizer")
    }
    own = {
        "page.html": PAGE.encode(),
        "worker.js": Path(__file__).with_name("foreign_worker.js"),
        "tiny.gguf": TINY,
        "tokenizers.js": runtime.runtime_folder() / "tokenizers.js",
        f"source/{make_wheel().name}": make_wheel(),
        f"compiled/{make_wheel().name}": browser_wheel(),
        f"pyodide/{runtime.LOCK}": lock,
    }

    def resolve(path: str) -> Path | bytes | None:
        if path in own:
            return own[path]
        folder, _, name = path.partition("/")
        if folder == "pyodide":
            return wheels.get(name) or distribution / name
        if folder == "simple" and (wheel := indexed.get(name.strip("/").lower())):
            return f'<a href="/files/{wheel.name}#sha256={files.sha256_file(wheel)}">{wheel.name}</a>'.encode()
        return next((wheel for wheel in indexed.values() if folder == "files" and wheel.name == name), None)

    with LocalServer(resolve, port=0, foreign=True) as server:
        yield server.url


def run(browser, foreign: str, script: str, code: str, wheel: str = "source"):
    browser.get(foreign + "page.html")
    code = code.replace("HTML", repr(PAGE)).replace("WHEEL", wheel)
    result = browser.execute_async_script(script, foreign, code)
    assert "error" not in result, result["error"]
    return json.loads(result["result"])


@pytest.fixture(scope="module")
def in_window(browser, foreign):
    return run(browser, foreign, IN_WINDOW, ASK)


def test_answers_in_a_window(in_window):
    assert len(in_window["ids"]) == 6 and in_window["read"]
    assert in_window["stages"] == ["model", "kernels"]
    assert in_window["title"] == "Skerry Point" and "1884" in in_window["text"]


def test_answers_the_same_in_a_module_worker_with_the_site_s_own_wheel(browser, foreign, in_window):
    assert run(browser, foreign, IN_WORKER, ASK, "compiled") == in_window


def test_another_tokenizer_is_refused(browser, foreign):
    name, sentence, other = run(browser, foreign, IN_WORKER, WRONG_LIBRARY)
    assert (name, other) == ("IntegrityError", "UsageError")
    assert "page.html has the SHA-256" in sentence
