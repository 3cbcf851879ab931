"""Files that are either whole or not there. CPython only."""

import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pyweb.errors import IntegrityError, NetworkError

__all__ = ["copy_stream", "download", "part_hashes", "partial_folder", "sha256_file", "whole_file"]

CHUNK = 1 << 20

OnBytes = Callable[[int, int], None]


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Yields a file to write; it becomes `target` only when the block ends without an exception."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """Yields an empty folder; it becomes `target` only when the block ends without an exception."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        yield folder
        folder.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sha256_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def part_hashes(path: Path, part: int) -> list[str]:
    """Hexadecimal SHA-256 of each part of `part` bytes of a file."""
    with path.open("rb") as file:
        return [hashlib.sha256(chunk).hexdigest() for chunk in iter(lambda: file.read(part), b"")]


def copy_stream(
    source, target: BinaryIO, name: str, total: int, sha256: str | None, on_bytes: OnBytes | None = None
) -> None:
    """Copies a readable stream and checks the digest of what went through.

    Raises:
        IntegrityError: the bytes have another SHA-256.
    """
    digest, done = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        target.write(chunk)
        done += len(chunk)
        if on_bytes:
            on_bytes(done, total)
    if sha256 and digest.hexdigest() != sha256:
        raise IntegrityError(f"{name} has the SHA-256 {digest.hexdigest()}, not {sha256}.")


def download(
    url: str, target: Path, sha256: str | None = None, on_bytes: OnBytes | None = None, timeout: float = 60
) -> None:
    """Fetches one URL into `target`.

    Raises:
        NetworkError: no connection, a bad status, or the connection broke off.
        IntegrityError: the bytes have another SHA-256.
    """
    try:
        with urllib.request.urlopen(url, timeout=timeout) as reply, whole_file(target) as file:
            total = int(reply.headers.get("Content-Length") or 0)
            copy_stream(reply, file, url, total, sha256, on_bytes)
    except urllib.error.HTTPError as error:
        raise NetworkError(f"{url} answered {error.code} {error.reason}.") from error
    except OSError as error:
        raise NetworkError(f"{url} could not be fetched: {getattr(error, 'reason', error)}.") from error
