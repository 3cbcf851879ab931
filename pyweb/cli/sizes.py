"""`pyweb sizes`: what a first visit downloads beside the model, part by part."""

import json
import tempfile
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path

from pyweb import resources
from pyweb.cli import precompress, runtime
from pyweb.cli.layout import Layout

__all__ = ["BUDGET", "Part", "first_visit", "sizes", "table"]

BUDGET = 12_000_000
"""Bytes that a first visit may cost, compressed and without the model."""

# In the order in which they are needed; names without a version are completed by the lock.
_PANEL = ("panel", "conversation", "widgets")
_PAGE = (*(f"{name}.{kind}" for name in _PANEL for kind in ("js", "css")), "turn.js", "colours.css")
_PARTS = (
    ("Page and bridge", (*_PAGE, "models/index.json", "js_bridge/*.js")),
    ("Pyodide: Python itself", ("runtime/pyodide.mjs", "runtime/pyodide.asm.mjs", "runtime/pyodide.asm.wasm")),
    ("Python's standard library", (f"runtime/{runtime.LOCK}", "runtime/python_stdlib.zip")),
    ("pyweb with its kernels", ("pyweb",)),
    ("jinja2, for chat templates", ("jinja2", "markupsafe")),
    ("Tokenizer", ("runtime/tokenizers.js",)),
    ("numpy, while weights stream", ("numpy",)),
    ("lxml and trafilatura, while weights stream", ("lxml", "trafilatura", "justext", "charset-normalizer")),
)


@dataclass(frozen=True)
class Part:
    """Bytes of one part: `plain` as the files are, `sent` as a server with brotli sends them."""

    name: str
    files: int
    plain: int
    sent: int


def first_visit() -> list[Part]:
    """The parts of a first visit, in the order in which they are needed.

    Raises:
        SetupError: the runtime is not there, or node failed.
    """
    layout = Layout()
    lock = json.loads(layout.resolve(f"runtime/{runtime.LOCK}"))["packages"]
    with tempfile.TemporaryDirectory() as folder:
        return [
            _part(name, [path for item in items for path in _paths(layout, lock, item, Path(folder))])
            for name, items in _PARTS
        ]


def _paths(layout: Layout, lock: dict, item: str, folder: Path) -> list[Path]:
    """Files of an entry of `_PARTS`; what the site generates is written into `folder`."""
    if item in lock:
        item = f"runtime/{lock[item]['file_name']}"
    if item.endswith("*.js"):
        return sorted(resources.folder(item.partition("/")[0]).glob("*.js"))
    found = layout.resolve(item)
    if isinstance(found, Path):
        return [found]
    path = folder / Path(item).name
    path.write_bytes(found)
    return [path]


def _part(name: str, paths: list[Path]) -> Part:
    # An archive goes as it is: it is compressed, and most servers leave it alone.
    archives = [path for path in paths if path.suffix in (".whl", ".zip")]
    texts = [path for path in paths if path not in archives]
    done = sum(path.stat().st_size for path in archives)
    plain = done + sum(path.stat().st_size for path in texts)
    return Part(name, len(paths), plain, done + (sum(precompress.compressed_sizes(texts)) if texts else 0))


def table(parts: list[Part]) -> str:
    """The parts as a Markdown table, in MB of a million bytes, with their sum."""
    total = Part("together", *(sum(getattr(part, key) for part in parts) for key in ("files", "plain", "sent")))
    rows = [f"| {p.name} | {p.files} | {p.plain / 1e6:.2f} | {p.sent / 1e6:.2f} |" for p in (*parts, total)]
    return "\n".join(["| part | files | MB plain | MB with brotli |", "|---|---:|---:|---:|", *rows])


def sizes(options: Namespace) -> None:
    """Prints where the bytes of a first visit go."""
    parts = first_visit()
    print(json.dumps([asdict(part) for part in parts]) if options.json else table(parts))
