"""Opens a page in a tab of its own and takes the snapshot there, through the DevTools protocol."""

import gzip
import re
import threading
import time
import urllib.parse
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pyweb import resources
from pyweb.cli.cdp import Pipe, Tab
from pyweb.cli.server import LocalServer
from pyweb.errors import NetworkError, UsageError

__all__ = ["is_url", "page_address", "read_page", "take_snapshot"]

LOAD_SECONDS = 30
QUIET_SECONDS = 0.5
QUIET_LIMIT_SECONDS = 10

# What the MIME Sniffing standard calls binary data bytes; no text in a legacy encoding has many of them.
BINARY = bytes({*range(0x20)} - {*b"\t\n\f\r\x1b"})

MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def is_url(text: str) -> bool:
    """Whether a page or model is named by an http(s) URL."""
    return text.lower().startswith(("http://", "https://"))


def read_page(path: Path) -> bytes:
    """A local page's bytes, unpacked where the name ends in `.gz`.

    Raises:
        UsageError: there is no such file, it can't be read, or it is binary.
    """
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"The page {path} can't be read: {reason}.", "Give a file or a URL.") from error
    # A browser overlooks a stray one, and UTF-16 has them in every other place.
    if not data.startswith(MARKS) and len(data) - len(data.translate(None, BINARY)) > len(data) / 100:
        raise UsageError(f"The file {path} is no HTML.", "Give a web page.")
    return data


@contextmanager
def page_address(page: str) -> Iterator[str]:
    """Yields the URL of a page for the browser: a local file gets a server and an origin of its own."""
    if is_url(page):
        yield page
        return
    path = Path(page).expanduser()
    content = _marked(read_page(path))
    name = path.name.removesuffix(".gz")
    folder = path.resolve().parent

    def resolve(asked: str) -> Path | bytes | None:
        if asked == name:
            return content
        parts = PurePosixPath(asked).parts
        if not parts or any(part.startswith(".") for part in parts):
            return None
        beside = (folder / asked).resolve()
        return beside if beside.is_relative_to(folder) else None

    with LocalServer(resolve, port=0, foreign=True) as server:
        yield server.url + urllib.parse.quote(name)


def _marked(content: bytes) -> bytes:
    """UTF-8 that doesn't say so gets a byte order mark: a browser would guess a local code page."""
    if content.startswith(MARKS) or re.search(rb"charset", content[:1024], re.I):
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return content
    return MARKS[0] + content


def take_snapshot(pipe: Pipe, url: str) -> dict:
    """What `snapshot.js` says about a page once it has loaded: html, url, title, language, selection.

    Raises:
        NetworkError: the page could not be opened.
        BrowserError: the browser ended, or the snapshot failed.
    """
    tab = Tab(pipe)
    visit = _Visit(tab)
    tab.listen(visit.on_event)
    for domain in ("Page", "Network", "Runtime"):
        tab.call(f"{domain}.enable")
    failure = tab.call("Page.navigate", url=url).get("errorText")
    if failure:
        raise NetworkError(f"The page {url} could not be opened: {failure}.", "Check the address.")
    visit.wait()
    if visit.status >= 400:
        raise NetworkError(f"The page {url} answered with status {visit.status}.", "Check the address.")
    source = re.sub(r"^export (default )?", "", resources.text("js_bridge", "snapshot.js"), flags=re.M)
    result = tab.evaluate(f"(() => {{ {source}\nreturn snapshot(document); }})()")
    tab.close()
    return result


class _Visit:
    """Follows a tab's load and its open requests."""

    def __init__(self, tab: Tab):
        self._tab = tab
        self._loaded = threading.Event()
        self._open: set[str] = set()
        self._changed = time.monotonic()
        self.status = 200

    def on_event(self, message: dict) -> None:
        method, params = message["method"], message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Page.javascriptDialogOpening":
            self._tab.send_quietly("Page.handleJavaScriptDialog", accept=True)
        elif method == "Network.requestWillBeSent":
            self._open.add(params["requestId"])
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self._open.discard(params["requestId"])
        elif method == "Network.responseReceived" and params.get("type") == "Document":
            if params.get("frameId") == self._tab.target:
                self.status = params["response"]["status"]
        if method.startswith("Network."):
            self._changed = time.monotonic()

    def wait(self) -> None:
        """Returns when the page has loaded and its network was quiet for a moment, or after the limits."""
        end = time.monotonic() + LOAD_SECONDS
        while not self._loaded.wait(0.1) and time.monotonic() < end and not self._tab.ended():
            pass
        end = time.monotonic() + QUIET_LIMIT_SECONDS
        while time.monotonic() < end and not self._tab.ended():
            if not self._open and time.monotonic() - self._changed > QUIET_SECONDS:
                return
            time.sleep(0.05)
