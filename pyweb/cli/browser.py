"""Finds a Chrome or Chromium, starts it headless over a pipe, and ends it with the command."""

import atexit
import ctypes
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from pyweb.cli.cdp import Pipe
from pyweb.errors import BrowserError

__all__ = ["ADAPTERS", "Browser", "extra_flags", "find_browser", "flags", "pick_adapter"]

ADAPTERS = ("auto", "software", "hardware")

NAMES = (
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "chrome",
    "microsoft-edge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/usr/lib/chromium/chromium",
    "/opt/google/chrome/chrome",
)

QUIET = (
    "--headless",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page that nobody looks at must not be slowed down.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-dev-shm-usage",
)
SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
# A third less time per token on SwiftShader (181 to 110 ms on two cores); hides out-of-bounds bugs.
UNCHECKED = ("--enable-dawn-features=disable_robustness,disable_workgroup_init",)
# Headless Chrome on Linux takes the driver's Vulkan only with all of these.
HARDWARE_LINUX = (
    "--enable-unsafe-webgpu",
    "--ignore-gpu-blocklist",
    "--use-angle=vulkan",
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
)


def find_browser() -> str:
    """Path of a Chrome or Chromium; the environment variable CHROME comes first.

    Raises:
        BrowserError: none was found.
    """
    named = os.environ.get("CHROME")
    if named:
        if found := shutil.which(named):
            return found
        raise BrowserError(f"CHROME names {named}, which is no program.")
    for candidate in (*NAMES, *PLACES):
        if found := shutil.which(candidate):
            return found
    raise BrowserError("No Chrome or Chromium was found.")


def pick_adapter(wanted: str) -> str:
    """`software` or `hardware`; `auto` looks for a graphics device."""
    if wanted != "auto":
        return wanted
    if sys.platform != "linux":
        return "hardware"
    devices = [*Path("/dev").glob("dri/renderD*"), *Path("/dev").glob("nvidia[0-9]*")]
    return "hardware" if devices else "software"


def flags(adapter: str, checks: bool) -> list[str]:
    """Command-line switches.

    Args:
        adapter: `software` or `hardware`.
        checks: keep Dawn's bounds checks on the software adapter.
    """
    chosen = list(QUIET)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        chosen.append("--no-sandbox")
    if adapter == "software":
        chosen += SOFTWARE + (() if checks else UNCHECKED)
    elif sys.platform == "linux":
        chosen += HARDWARE_LINUX
    return chosen + extra_flags()


def extra_flags() -> list[str]:
    """The switches that the environment variable PYWEB_BROWSER_FLAGS adds."""
    return shlex.split(os.environ.get("PYWEB_BROWSER_FLAGS", ""))


class Browser:
    """A running browser; leaving the `with` block ends it and its children.

    Raises:
        BrowserError: it could not be started.
    """

    def __init__(self, profile: Path, switches: list[str]):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        command = [find_browser(), *switches, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        try:
            self._process = subprocess.Popen(
                [*command, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                # Python's own descriptors don't survive exec; 3 and 4 must.
                close_fds=False,
                preexec_fn=lambda: _child(theirs_in, theirs_out),
            )
        except OSError as error:
            raise BrowserError(f"The browser {command[0]} could not be started: {error}.") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        atexit.register(self.close)
        self.pipe = Pipe(os.fdopen(ours_in, "rb", buffering=0), os.fdopen(ours_out, "wb", buffering=0))

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the browser: asked first, so that its profile is whole, then by force."""
        atexit.unregister(self.close)
        if self.alive():
            self.pipe.send_quietly("Browser.close")
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self.pipe.close()


def _child(read: int, write: int) -> None:
    """In the new process: the debugging pipe on 3 and 4, and death with the command on Linux."""
    high_read, high_write = (fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (read, write))
    os.dup2(high_read, 3)
    os.dup2(high_write, 4)
    os.close(high_read)
    os.close(high_write)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
