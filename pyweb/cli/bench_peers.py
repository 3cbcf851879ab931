"""`pyweb bench --peers`: other engines beside ours, in the same browser build, with prompts and replies as long."""

import json
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import pyweb
from pyweb.bench.report import Table, markdown, spread
from pyweb.cli import browser as browsers
from pyweb.cli import peers
from pyweb.cli.bench import show
from pyweb.cli.bench_page import Subject, address, pages
from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer
from pyweb.errors import BrowserError, PywebError, UsageError

__all__ = ["DEVELOPER", "carried", "comparison", "joined", "run"]

PAGE = "peers.html"
DEVELOPER = (
    "--enable-dawn-features=vulkan_enable_f16_on_nvidia",
    "--disable-dawn-features=tiered_adapter_limits,timestamp_quantization",
)
"""What a visitor's browser doesn't have and a developer may switch on: `shader-f16` on NVIDIA's Vulkan, the adapter's
own limits in place of a tier's, fine timestamps."""

# Switches that hold a list: of two, Chromium takes the last.
LISTS = ("--enable-dawn-features", "--disable-dawn-features", "--enable-features", "--disable-features")


@dataclass(frozen=True)
class _Engine:
    """A row of the comparison: the engine under a set of switches, and its part of the page's query."""

    name: str
    set: str
    query: dict[str, object]


def run(options: Namespace, subject: Subject, progress: Progress) -> None:
    """Launches the browser once per set of switches and times the engines one after the other.

    Raises:
        UsageError: an unknown peer, or one whose model isn't named.
        BrowserError: at the end, where some of the engines failed.
    """
    named = peers.names(options.peers)
    _check_models(named, options)
    layout = Layout(subject.models, carried(named, subject, options.onnx, progress))
    engines = _engines(named, subject, options)
    plain = browsers.flags(browsers.pick_adapter(options.adapter), options.checks)
    rows = []
    with LocalServer(layout.resolve, options.port) as server:
        for name, switches in (("visitor", plain), ("developer", joined([*plain, *DEVELOPER]))):
            with pages(switches, True, progress, options.timeout) as opened:
                for engine in (engine for engine in engines if engine.set == name):
                    rows.append(_row(engine, opened, server.url, progress))
    table = comparison(rows)
    show({"subject": subject.name, "rows": rows, "tables": [table]}, markdown([table]), options)
    failed = [f"{row['name']} ({row['set']})" for row in rows if "error" in row]
    if failed:
        raise BrowserError(f"{len(failed)} of {len(rows)} runs failed: {', '.join(failed)}.", "")


def _check_models(named: list[str], options: Namespace) -> None:
    if "transformers" in named and not options.onnx:
        remedy = "Give its folder with --onnx; docs/benchmark.md says how to make one."
        raise UsageError("transformers.js needs an ONNX model.", remedy)
    if "webllm" in named and not (options.webllm_lib and options.webllm_weights):
        remedy = "Give URLs with --webllm-lib and --webllm-weights."
        raise UsageError("WebLLM needs a model library and its weights.", remedy)


def _engines(named: list[str], subject: Subject, options: Namespace) -> list[_Engine]:
    # Drafts are good or bad by what a model writes: of random weights they say nothing.
    modes = ("loop",) if subject.random else ("loop", "adaptive")
    lengths = {"runs": options.runs, "tokens": options.tokens, "prompt": options.prompt_tokens}
    source = {"shape": subject.name} if subject.random else {"model": subject.url}
    found = [
        _Engine(f"pyweb, {mode}", kind, {"engine": "pyweb", "mode": mode} | source | lengths)
        for kind in ("visitor", "developer")
        for mode in modes
    ]
    queries = {
        "wllama": source,
        "transformers": {"onnx": "onnx"},
        "webllm": {"lib": options.webllm_lib, "weights": options.webllm_weights},
    }
    return [*found, *(_Engine(name, "developer", {"engine": name} | queries[name] | lengths) for name in named)]


def carried(named: list[str], subject: Subject, onnx: str | None, progress: Progress) -> dict[str, Path | bytes]:
    """What `Layout` serves beside the site: the packages, the model's other forms, and a list of it all for the page.

    Raises:
        UsageError: the ONNX model isn't laid out as transformers.js wants it.
        NetworkError, IntegrityError: a package could not be had.
    """
    found: dict[str, Path | bytes] = dict(peers.packages(named, progress))
    about: dict[str, object] = {
        "engines": {"pyweb": pyweb.__version__} | {name: peers.PACKAGES[name][0].version for name in named},
        "shapes": [],
    }
    if subject.random:
        from pyweb.weights.synthetic import random_file

        made = random_file(subject.name)
        found[f"shape-{subject.name}.json"] = json.dumps(made.recipe()).encode()
        found[f"shape-{subject.name}.header"] = made.header
        about["shapes"] = [subject.name]
    if onnx:
        folder = Path(onnx).expanduser()
        found["onnx"] = folder
        about["onnx"] = {"path": "onnx", "name": folder.name, "dtypes": _dtypes(folder)}
    return found | {"peers.json": json.dumps(about).encode()}


def _dtypes(folder: Path) -> list[str]:
    """Which models of 4 bits the folder holds: with f16, or without."""
    found = [dtype for dtype in ("q4f16", "q4") if (folder / "onnx" / f"model_{dtype}.onnx").is_file()]
    if not found or not (folder / "config.json").is_file():
        raise UsageError(f"{folder} holds no ONNX model of 4 bits.", "tools/onnx_model.py of the repository makes one.")
    return found


def joined(switches: list[str]) -> list[str]:
    """The same switches with each list of features named once."""
    lists = {name: [] for name in LISTS}
    others = []
    for switch in switches:
        name, _, value = switch.partition("=")
        if name in lists:
            lists[name] += value.split(",")
        else:
            others.append(switch)
    return others + [f"{name}={','.join(dict.fromkeys(values))}" for name, values in lists.items() if values]


def _row(engine: _Engine, opened, base: str, progress: Progress) -> dict:
    row: dict[str, object] = {"name": engine.name, "set": engine.set}
    try:
        row |= opened.run(address(base, PAGE, engine.query), f"{engine.name}, switches of a {engine.set}")
    except PywebError as error:
        row["error"] = f"{error.name}: {error}"
    progress.finish()
    if error := row.get("error"):
        note(f"{engine.name} failed. {error}")
    return row


def comparison(rows: list[dict]) -> Table:
    """All engines as one table."""
    columns = ["engine", "version", "switches", "runs on", "f16", "prompt", "reply", "first token, ms", "ms a token"]
    notes = [f"{row['name']} ({row['set']}): {' '.join(row['notes'])}" for row in rows if row.get("notes")]
    note = "Medians, least and most in brackets; warm-up left out, prefix caches off. " + " ".join(notes)
    return {
        "title": "Beside other engines",
        "columns": columns,
        "rows": [_cells(row) + ["–"] * (len(columns) - len(_cells(row))) for row in rows],
        "note": note.strip(),
    }


def _cells(row: dict) -> list[str]:
    if "error" in row:
        return [row["name"], "–", row["set"], "failed"]
    f16 = "yes" if row["adapter"]["f16"] else "no"
    lengths = [f"{row['promptTokens']:g}", str(row["tokens"])]
    return [
        row["name"],
        row["version"],
        row["set"],
        row["backend"],
        f16,
        *lengths,
        *map(spread, (row["firstToken"], row["decode"])),
    ]
