"""`pyweb setup`: a browser, the runtime parts and the embedded model; what is there is left alone."""

import os
import shutil
import subprocess
import sys
from argparse import Namespace

from pyweb.cli import fetching, model_files, parts, peers, runtime
from pyweb.cli.browser import find_browser
from pyweb.cli.browser_wheel import browser_wheel
from pyweb.cli.console import Progress, note
from pyweb.errors import BrowserError
from pyweb.storage import registry

__all__ = ["setup"]


def setup(options: Namespace) -> None:
    """Prepares everything that the other commands need.

    Raises:
        NetworkError, IntegrityError, SetupError: a part could not be had.
    """
    progress = Progress()
    _browser(progress)
    runtime.prepare(progress)
    browser_wheel()
    model_files.fetch(registry.find(registry.DEFAULT), progress)
    if options.tests:
        _test_tools(progress)
    progress.finish()


def _browser(progress: Progress) -> None:
    """Installs Debian's Chromium where no browser is found, else says what to install and goes on."""
    try:
        find_browser()
        return
    except BrowserError:
        pass
    if not _can_use_apt():
        note("No Chrome or Chromium was found: install one, it is needed to ask questions headless.")
        return
    progress.update("browser", text="installing chromium with apt")
    # Without any font a headless browser may crash.
    _apt_install("chromium", "fonts-liberation")
    try:
        find_browser()
    except BrowserError:
        note("Chromium could not be installed with apt: install Chrome or Chromium by hand.")


def _test_tools(progress: Progress) -> None:
    """What only tests need: node and npm for kernels, micropip, an engine to compare with, chromedriver."""
    for name in ("node", "npm"):
        fetching.tool(name)
    runtime.pypi_wheel(parts.MICROPIP, progress)
    peers.packages(["wllama"], progress)
    if shutil.which("chromedriver") or "chromium" not in find_browser() or not _can_use_apt():
        return
    progress.update("chromedriver", text="installing chromium-driver with apt")
    _apt_install("chromium-driver")


def _can_use_apt() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt_install(*packages: str) -> None:
    """Installs Debian packages; a failure shows in what is missing afterwards."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", *arguments], env=environment, capture_output=True, stdin=subprocess.DEVNULL
        )
