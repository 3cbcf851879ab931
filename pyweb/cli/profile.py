"""The browser profile that lasts between runs, used by one command at a time."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyweb.cli.console import note
from pyweb.storage import paths

__all__ = ["browser_profile"]

WAIT_SECONDS = 30


@contextmanager
def browser_profile(fresh: bool, wait: float = WAIT_SECONDS) -> Iterator[Path]:
    """Yields a profile folder: the lasting one, or a temporary one where `fresh` or where it stays in use."""
    lock = None if fresh else _lock(paths.profile(), wait)
    if lock is not None:
        # Left by a browser that was killed; from another host name they would keep this one from starting.
        for leftover in paths.profile().glob("Singleton*"):
            leftover.unlink(missing_ok=True)
        try:
            yield paths.profile()
        finally:
            os.close(lock)
        return
    folder = Path(tempfile.mkdtemp(prefix="pyweb-profile-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lock(profile: Path, wait: float) -> int | None:
    """Descriptor that holds the profile's lock, or None when it stayed in use."""
    profile.mkdir(parents=True, exist_ok=True)
    # Python's descriptors don't survive exec, so the lock ends with the command, not with its browser.
    descriptor = os.open(profile.with_name("profile.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    end, told = time.monotonic() + wait, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= end:
                os.close(descriptor)
                note("The browser profile is still in use: this run takes a temporary one.")
                return None
            if not told:
                note(f"The browser profile is in use by process {_holder(descriptor)}: waiting.")
                told = True
            time.sleep(0.2)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
