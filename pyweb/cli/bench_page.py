"""A page of the benchmark from outside: what is measured, its address, and its result once it has one."""

import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyweb import errors
from pyweb.cli import browser as browsers
from pyweb.cli.cdp import Tab
from pyweb.cli.console import Progress
from pyweb.cli.profile import browser_profile
from pyweb.cli.runner import local_model
from pyweb.errors import BrowserError, PywebError
from pyweb.storage import registry

__all__ = ["Evaluate", "Pages", "Subject", "address", "pages", "result_of", "subject_of"]

Evaluate = Callable[[str], object]
"""Gives the value of a JavaScript expression in a page."""

# Both pages keep their state here; a page that is just (re)loading has none.
_STATE = "(() => { const { progress, result } = globalThis.benchmark ?? {}; return { progress, result }; })()"
_INTERVAL = 1.0  # seconds; looking at a page takes a little of its time
_PATIENCE = 10  # looks in a row that may fail, as they do while a page loads anew


@dataclass(frozen=True)
class Subject:
    """The model of a benchmark: a known or other file of this machine, a URL, or a shape with random weights.

    Attributes:
        name: as it was given.
        path: of the file, where there is one.
        random: the name is a shape's.
    """

    name: str
    path: Path | None = None
    random: bool = False

    @property
    def models(self) -> dict[str, Path]:
        """What the site has to carry for it."""
        return {self.path.name: self.path} if self.path else {}

    def query(self) -> dict[str, str]:
        """Its part of a page's query string."""
        if self.random:
            return {"shape": self.name}
        return {"model": self.name if self.name in registry.MODELS else self.url}

    @property
    def url(self) -> str:
        """Of the file, relative to the site."""
        return f"models/{urllib.parse.quote(self.path.name)}" if self.path else self.name


def subject_of(model: str, shape: str | None, progress: Progress) -> Subject:
    """The model or shape that was named; a known model is fetched where it isn't there.

    Raises:
        UnknownModelError, UsageError: there is no such model, or no such shape.
    """
    if shape:
        from pyweb.weights.shapes import shape_of

        shape_of(shape)
        return Subject(shape, random=True)
    return Subject(model.lower() if model.lower() in registry.MODELS else model, local_model(model, progress))


def address(base: str, page: str, query: dict[str, object]) -> str:
    """URL of a page that starts by itself; options without a value are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{base}{page}?{urllib.parse.urlencode(given | {'auto': 1}, safe=',:/')}"


def result_of(evaluate: Evaluate, what: str, progress: Progress, seconds: float) -> dict:
    """Waits for a page's result and shows what it is doing.

    Raises:
        BrowserError: the browser ended, or there was no result in time.
        PywebError: what went wrong in the page, by its own class.
    """
    end, failed = time.monotonic() + seconds, 0
    progress.update(what)
    while time.monotonic() < end:
        try:
            state = evaluate(_STATE) or {}
            failed = 0
        except BrowserError:
            failed += 1
            if failed > _PATIENCE:
                raise
            state = {}
        if result := state.get("result"):
            if error := result.get("error"):
                raise _raised(error)
            return result
        if state.get("progress"):
            progress.update(what, text=state["progress"])
        time.sleep(_INTERVAL)
    raise BrowserError(f"There was no result within {seconds:g} s.", "Measure less, or raise --timeout.")


def _raised(error: dict) -> PywebError:
    """The page's error as the Python class of its name."""
    name, message = error.get("name") or "BrowserError", error.get("message") or "The page failed."
    known = getattr(errors, name, None) if name in errors.__all__ else None
    return (known or type(name, (PywebError,), {}))(message, error.get("remedy") or "")


class Pages:
    """One browser of this machine, in which pages run one after the other, each in a tab of its own."""

    def __init__(self, browser: browsers.Browser, progress: Progress, seconds: float):
        self._browser = browser
        self._progress = progress
        self._seconds = seconds

    def run(self, url: str, what: str) -> dict:
        """The result of a page; its tab is closed, so that its GPU memory is free for the next."""
        tab = Tab(self._browser.pipe)
        crashed: list[dict] = []
        tab.listen(lambda message: message["method"] == "Inspector.targetCrashed" and crashed.append(message))
        for domain in ("Page", "Inspector"):
            tab.call(f"{domain}.enable")

        def evaluate(expression: str):
            if crashed or not self._browser.alive():
                raise BrowserError("The page of the benchmark crashed." if crashed else "The browser ended.")
            # As text: the protocol's own serialisation is slow on deep values.
            return json.loads(tab.evaluate(f"JSON.stringify({expression})") or "null")

        try:
            tab.call("Page.navigate", url=url)
            return result_of(evaluate, what, self._progress, self._seconds)
        finally:
            if self._browser.alive():
                tab.close()


@contextmanager
def pages(switches: list[str], fresh: bool, progress: Progress, seconds: float) -> Iterator[Pages]:
    """A browser with these switches for the block."""
    with browser_profile(fresh) as profile, browsers.Browser(profile, switches) as browser:
        yield Pages(browser, progress, seconds)
