"""Runs one job in a headless browser: server, browser, page snapshot, messages back."""

import os
import queue
import secrets
import sys
import urllib.parse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pyweb import errors
from pyweb.cli import browser as browsers
from pyweb.cli import model_files
from pyweb.cli.cdp import Tab
from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.profile import browser_profile
from pyweb.cli.server import DEFAULT_PORT, Job, LocalServer
from pyweb.cli.snapshot import is_url, page_address, take_snapshot
from pyweb.errors import BrowserError, NoAdapterError, PywebError, UnknownModelError
from pyweb.storage import files, registry

__all__ = ["Machine", "local_model", "model_for_page", "run_job"]

OnEvent = Callable[[dict], None]

AGAIN = "Try again, or with --fresh."
CONSOLE_EVENTS = ("Runtime.exception", "Runtime.console", "Log.")


@dataclass(frozen=True)
class Machine:
    """How the browser is run.

    Attributes:
        adapter: one of `browser.ADAPTERS`.
        checks: keep Dawn's bounds checks on the software adapter.
        fresh: an empty, temporary profile.
        port: of the local server.
    """

    adapter: str = "auto"
    checks: bool = False
    fresh: bool = False
    port: int = DEFAULT_PORT


def local_model(name: str, progress: Progress) -> Path | None:
    """The file of a model named by a short name (fetched where missing) or a path; None for a URL.

    Raises:
        UnknownModelError: neither a known name nor a file.
    """
    if is_url(name):
        return None
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.is_dir() and name.lower() not in registry.MODELS:
        raise UnknownModelError(f"{name} is a folder.", "Name a model file in it.")
    if path.suffix == ".gguf" or len(path.parts) > 1:
        raise UnknownModelError(f"There is no model file {name}.")
    return model_files.fetch(registry.find(name), progress)


def model_for_page(name: str, path: Path | None, base: str) -> dict:
    """The `model` of a load message."""
    if path is None:
        return {"name": name.rsplit("/", 1)[-1], "url": name}
    address = {"url": f"{base}models/{urllib.parse.quote(path.name)}"}
    if name.lower() in registry.MODELS:
        return registry.find(name).public() | address
    # With these, what the browser kept of an older file of the same name is never used.
    parts = files.part_hashes(path, registry.PART)
    return {"name": path.name, "size": path.stat().st_size, "parts": parts} | address


def run_job(
    model: str,
    load: dict,
    method: str,
    params: dict,
    machine: Machine,
    on_event: OnEvent,
    page: str | None = None,
) -> dict:
    """The result of one worker method in the browser.

    Args:
        model: short name, path or URL.
        load: further parameters of the load message.
        method: of the worker, with its `params`.
        on_event: gets `progress` and `text` messages.
        page: file or URL whose snapshot becomes the parameter `page`.

    Raises:
        PywebError: whatever went wrong, here or in the page, by its own class.
    """
    chosen = replace(machine, adapter=browsers.pick_adapter(machine.adapter))
    try:
        return _run(model, load, method, params, chosen, on_event, page)
    except NoAdapterError:
        if machine.adapter != "auto" or chosen.adapter == "software":
            raise
        note("The graphics device offers no WebGPU here: trying the software adapter.")
        return _run(model, load, method, params, replace(chosen, adapter="software"), on_event, page)


def _run(model, load, method, params, machine: Machine, on_event: OnEvent, page: str | None) -> dict:
    messages: queue.SimpleQueue = queue.SimpleQueue()
    progress = Progress()
    path = local_model(model, progress)
    progress.finish()
    layout = Layout({path.name: path} if path else {})
    job = Job(secrets.token_urlsafe(16), {}, messages.put)
    with ExitStack() as stack:
        address = stack.enter_context(page_address(page)) if page else None
        profile = stack.enter_context(browser_profile(machine.fresh))
        server = stack.enter_context(LocalServer(layout.resolve, machine.port, job))
        if server.port != machine.port:
            note(f"Port {machine.port} is taken: using {server.port}, where the browser stores the model again.")
        switches = browsers.flags(machine.adapter, machine.checks)
        browser = stack.enter_context(browsers.Browser(profile, switches))
        if address:
            on_event({"event": "progress", "stage": "page", "note": page})
            params = params | {"page": take_snapshot(browser.pipe, address)}
        load = load | {"model": model_for_page(model, path, server.url)}
        job.content = {"load": load, "method": method, "params": params}
        _open(Tab(browser.pipe), f"{server.url}run.html?key={job.key}", messages)
        return _follow(messages, browser, on_event)


def _open(tab: Tab, url: str, messages: queue.SimpleQueue) -> None:
    tab.listen(lambda message: _on_tab_event(message, messages))
    for domain in ("Page", "Runtime", "Log", "Inspector"):
        tab.call(f"{domain}.enable")
    tab.call("Page.navigate", url=url)


def _on_tab_event(message: dict, messages: queue.SimpleQueue) -> None:
    if message["method"] == "Inspector.targetCrashed":
        sentence = "The page of the runtime crashed."
        messages.put({"event": "error", "name": "BrowserError", "message": sentence, "remedy": AGAIN})
    elif os.environ.get("PYWEB_DEBUG") and message["method"].startswith(CONSOLE_EVENTS):
        print(message["method"], message["params"], file=sys.stderr)


def _follow(messages: queue.SimpleQueue, browser: browsers.Browser, on_event: OnEvent) -> dict:
    """Passes messages on until the job's end."""
    while True:
        try:
            message = messages.get(timeout=0.3)
        except queue.Empty:
            if not browser.alive():
                raise BrowserError("The browser ended during the run.", AGAIN) from None
            continue
        if message["event"] == "done":
            return message["result"]
        if message["event"] == "error":
            raise _as_exception(message)
        on_event(message)


def _as_exception(message: dict) -> PywebError:
    """The page's error as the Python class of its name."""
    known = getattr(errors, message["name"], None) if message["name"] in errors.__all__ else None
    if known:
        return known(message["message"], message.get("remedy") or None)
    made = type(message["name"], (PywebError,), {})
    return made(message["message"], message.get("remedy") or "")
