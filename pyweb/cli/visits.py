"""`pyweb visits`: what a first and a later visit take until a question can be asked, part by part."""

import json
import tempfile
import threading
import time
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path

from pyweb.cli import browser as browsers
from pyweb.cli.cdp import Tab
from pyweb.cli.console import Progress
from pyweb.cli.layout import Layout
from pyweb.cli.runner import local_model, model_for_page
from pyweb.cli.server import LocalServer
from pyweb.errors import BrowserError, UnknownModelError

__all__ = ["STAGES", "Visit", "measure", "table", "visits"]

# Part, and the progress that ends it: stage and note, or stage and "begin" or "end".
STAGES = (
    ("page, bridge and worker", "runtime Pyodide"),
    ("Pyodide with its standard library", "runtime pyweb"),
    ("pyweb's own modules", "runtime end"),
    ("device, header, tokenizer, plan; numpy beside them", "model begin"),
    ("weights", "model end"),
    ("tables", "kernels begin"),
    ("kernels and their self-check", "kernels end"),
    ("what was measured before", "ready"),
)

_SECONDS = 300

# Times are milliseconds since the navigation began; of progress that comes again the first counts.
_SCRIPT = """
(() => {
  const marks = {};
  const mark = (name) => { marks[name] ??= performance.now(); };
  const onProgress = ({ stage, done, total, note }) => {
    if (note) mark(`${stage} ${note}`);
    mark(`${stage} begin`);
    if (done >= total) mark(`${stage} end`);
  };
  (async () => {
    const { Assistant } = await import('/js_bridge/client.js');
    const assistant = await Assistant.load({ model: MODEL, onProgress });
    mark('ready');
    assistant.close();
    window.visit = { marks };
  })().catch((error) => { window.visit = { error: `${error.name}: ${error.message}` }; });
})()
"""


@dataclass(frozen=True)
class Visit:
    """Seconds of each of `STAGES`, and what came over the wire.

    Attributes:
        requests: answered, those that found nothing new included.
        bytes: of all bodies.
    """

    seconds: dict[str, float]
    requests: int
    bytes: int

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def measure(model: Path, adapter: str, count: int) -> list[Visit]:
    """Visits of the site with one model: the first with an empty profile, each in a browser of its own.

    Raises:
        BrowserError: the browser or the page failed.
    """
    replies: list[int] = []
    layout = Layout({model.name: model})
    switches = browsers.flags(browsers.pick_adapter(adapter), checks=False)
    found = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        LocalServer(
            layout.resolve, port=0, on_reply=lambda path, status, size: replies.append(size if status < 300 else 0)
        ) as server,
    ):
        for _ in range(count):
            replies.clear()
            with browsers.Browser(Path(profile), switches) as browser:
                described = model_for_page(str(model), model, server.url)
                marks = _marks(Tab(browser.pipe), server.url, described)
            found.append(Visit(_seconds(marks), len(replies), sum(replies)))
    return found


def _marks(tab: Tab, url: str, model: dict) -> dict[str, float]:
    loaded = threading.Event()
    tab.listen(lambda message: message["method"] == "Page.loadEventFired" and loaded.set())
    tab.call("Page.enable")
    tab.call("Page.navigate", url=f"{url}run.html")
    loaded.wait(30)
    tab.evaluate(_SCRIPT.replace("MODEL", json.dumps(model)))
    for _ in range(_SECONDS * 10):
        if visit := tab.evaluate("window.visit"):
            break
        time.sleep(0.1)
    else:
        raise BrowserError("The model was not loaded in time.")
    if "error" in visit:
        raise BrowserError(f"The model could not be loaded: {visit['error']}", "")
    return visit["marks"]


def _seconds(marks: dict[str, float]) -> dict[str, float]:
    seconds, before = {}, 0.0
    for name, end in STAGES:
        seconds[name] = max(0.0, (marks[end] - before) / 1000)
        before = max(before, marks[end])
    return seconds


def table(found: list[Visit]) -> str:
    """The visits as a Markdown table, a column each."""
    heads = [f"visit {number}" for number in range(1, len(found) + 1)]
    rows = [["seconds", *heads], ["---", *["---:"] * len(found)]]
    rows += [[name, *(f"{visit.seconds[name]:.2f}" for visit in found)] for name, _ in STAGES]
    rows.append(["together", *(f"{visit.total:.2f}" for visit in found)])
    rows.append(["requests", *(str(visit.requests) for visit in found)])
    rows.append(["MB of bodies", *(f"{visit.bytes / 1e6:.2f}" for visit in found)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def visits(options: Namespace) -> None:
    """Prints what visits take."""
    progress = Progress()
    path = local_model(options.model, progress)
    progress.finish()
    if path is None:
        raise UnknownModelError("Visits are measured with a model of this machine.", "Name a file or a known model.")
    found = measure(path, options.adapter, options.count)
    print(json.dumps([asdict(visit) for visit in found]) if options.json else table(found))
