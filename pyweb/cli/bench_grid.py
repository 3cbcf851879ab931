"""`pyweb bench --grid`: the same page on every kind of browser that a Selenium Grid has, one after the other."""

import json
import socket
import sys
import urllib.error
import urllib.parse
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import ModuleType

from pyweb.bench.report import markdown
from pyweb.cli import browser as browsers
from pyweb.cli.bench import PAGE, bench_query, prompts_of, show
from pyweb.cli.bench_page import Subject, address, result_of
from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer
from pyweb.errors import BrowserError, NetworkError, PywebError, UsageError

__all__ = ["run", "stereotypes", "switches"]

CHROMIUM = ("chrome", "MicrosoftEdge")
OPTIONS = {
    "chrome": "ChromeOptions",
    "MicrosoftEdge": "EdgeOptions",
    "firefox": "FirefoxOptions",
    "safari": "SafariOptions",
}
# Of a stereotype these are the node's own affair, or say what the Grid does with a session.
PRIVATE = ("se:", "goog:", "moz:", "ms:", "browserName")

_SECONDS = 10


def run(options: Namespace, subject: Subject, progress: Progress) -> None:
    """Measures on each kind of browser and prints its tables; a browser that fails doesn't keep the others from it.

    Raises:
        UsageError: Selenium is missing, or the Grid's URL is none.
        NetworkError: the Grid doesn't answer.
        BrowserError: at the end, where some of the browsers failed.
    """
    selenium = _selenium()
    from urllib3.exceptions import HTTPError  # of Selenium's own client

    found = stereotypes(options.grid)
    if not found:
        raise NetworkError(f"The Grid {options.grid} has no browser.", "Start a node.")
    layout = Layout(subject.models, prompts_of(options.prompts))
    devices = []
    with LocalServer(layout.resolve, options.port, host=options.host or _host(options.grid)) as server:
        url = address(server.url, PAGE, bench_query(options, subject))
        for stereotype in found:
            name = _name(stereotype)
            try:
                with _session(selenium, options, stereotype, server.url) as (page, described):
                    page.open(url)
                    devices.append(described | {"result": result_of(page.evaluate, name, progress, options.timeout)})
            except (PywebError, selenium.common.exceptions.WebDriverException, HTTPError) as error:
                sentence = str(error).strip().splitlines()[0]
                devices.append({"device": name, "error": f"{type(error).__name__}: {sentence}"})
            progress.finish()
            if error := devices[-1].get("error"):
                note(f"{name} failed. {error}")
    show({"devices": devices}, "\n\n".join(map(_tables, devices)), options)
    failed = [device["device"] for device in devices if "error" in device]
    if failed:
        raise BrowserError(f"{len(failed)} of {len(devices)} browsers failed: {', '.join(failed)}.", "")


def _selenium() -> ModuleType:
    try:
        import selenium.common.exceptions
        import selenium.webdriver
    except ImportError as error:
        raise UsageError("A Grid needs Selenium.", "Run `pip install 'pyweb[grid]'`.") from error
    return selenium


def stereotypes(grid: str) -> list[dict]:
    """The kinds of browsers of a Grid: what its nodes' slots offer, each kind once, in the Grid's order.

    Raises:
        UsageError: the URL is none.
        NetworkError: nothing or something else answers there.
    """
    try:
        with urllib.request.urlopen(f"{grid.rstrip('/')}/status", timeout=_SECONDS) as reply:
            status = json.load(reply)
        offered = [slot["stereotype"] for node in status["value"]["nodes"] for slot in node["slots"]]
    except urllib.error.URLError as error:
        raise NetworkError(f"The Grid {grid} doesn't answer: {error.reason}.", "Look at its address.") from error
    except ValueError as error:
        raise UsageError(f"{grid} is no Grid's address: {error}.", "It looks like http://HOST:4444.") from error
    except (KeyError, TypeError) as error:
        raise NetworkError(f"{grid} answers, but is no Selenium Grid 4.", "Look at its address.") from error
    return list({json.dumps(kind, sort_keys=True): kind for kind in offered}.values())


def _host(grid: str) -> str:
    """The address of this machine on the way to the Grid; nothing is sent."""
    parts = urllib.parse.urlsplit(grid)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((parts.hostname, parts.port or 80))
        return way.getsockname()[0]


def _name(stereotype: dict) -> str:
    """A kind of browser in words; what a node's owner added to tell devices apart comes last."""
    words = [stereotype.get(key) for key in ("browserName", "browserVersion", "platformName")]
    own = [value for key, value in stereotype.items() if ":" in key and not key.startswith(PRIVATE)]
    return " ".join(str(word) for word in (*words, *own) if word)


def switches(adapter: str, checks: bool, base: str) -> list[str]:
    """Command-line switches of a Chromium on a node: none but those asked for and those that the pages need.

    WebGPU needs a secure context, which a plain http address of another machine is only by a switch.
    """
    chosen = browsers.flags(adapter, checks) if adapter != "auto" else browsers.extra_flags()
    parts = urllib.parse.urlsplit(base)
    if parts.hostname == "localhost" or ip_address(parts.hostname).is_loopback:
        return chosen
    return [*chosen, f"--unsafely-treat-insecure-origin-as-secure={parts.scheme}://{parts.netloc}"]


class _Page:
    """A page in a session of the Grid."""

    def __init__(self, driver):
        self._driver = driver

    def open(self, url: str) -> None:
        self._driver.get(url)

    def evaluate(self, expression: str):
        from selenium.common.exceptions import JavascriptException

        try:
            return self._driver.execute_script(f"return {expression}")
        except JavascriptException as error:
            raise BrowserError(f"A script failed in the page: {error.msg}.", "") from error


@contextmanager
def _session(selenium: ModuleType, options: Namespace, stereotype: dict, base: str) -> Iterator[tuple["_Page", dict]]:
    """A page in a new session on a browser of this kind, and what the browser says it is."""
    browser = stereotype.get("browserName", "")
    if browser not in OPTIONS:
        raise BrowserError(f"There is no way to start {browser or 'a nameless browser'}.", "")
    asked = getattr(selenium.webdriver, OPTIONS[browser])()
    for key, value in stereotype.items():
        if not key.startswith(PRIVATE):
            asked.set_capability(key, value)
    if browser in CHROMIUM:
        for switch in switches(options.adapter, options.checks, base):
            asked.add_argument(switch)
    driver = selenium.webdriver.Remote(command_executor=options.grid, options=asked)
    try:
        given = driver.capabilities
        names = ("browserName", "browserVersion", "platformName")
        yield _Page(driver), {"device": _name(stereotype), "browser": {name: given.get(name) for name in names}}
    finally:
        try:
            driver.quit()
        except selenium.common.exceptions.WebDriverException as error:
            print(f"A session didn't end: {error.msg}", file=sys.stderr)


def _tables(device: dict) -> str:
    if "error" in device:
        return f"## {device['device']}\n\nFailed. {device['error']}"
    browser = " ".join(filter(None, device["browser"].values()))
    return f"## {device['device']}\n\n{browser}\n\n{markdown(device['result']['tables'])}"
