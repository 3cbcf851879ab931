"""`pyweb bench`: speed in a browser, here, on the browsers of a Selenium Grid, or beside other engines."""

import json
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from pyweb.bench.report import markdown
from pyweb.cli import browser as browsers
from pyweb.cli.bench_page import Subject, address, pages, subject_of
from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer
from pyweb.errors import UsageError
from pyweb.storage import files

__all__ = ["bench", "bench_query", "prompts_of", "show"]

PAGE = "bench.html"
PROMPTS = "prompts.jsonl"
SMOKE = {
    "parts": "modes,widths,prefill,roles,host,cuts",
    "runs": 1,
    "tokens": 8,
    "widths": "1,2",
    "modes": "loop,fixed:8",
    "lengths": "16",
    "role_widths": "1",
    "host_modes": "loop",
    "steps": 2,
    "batch": 1,
}
"""What `--smoke` measures: every part but visits and frames once, as little as there is."""


def bench(options: Namespace) -> None:
    """Measures and prints tables, or one line of JSON.

    Raises:
        UsageError: options that don't go together, or a file that can't be read.
        PywebError: whatever went wrong, here or in the page, by its own class.
    """
    _check(options)
    if options.folder:
        from pyweb.cli.bench_folder import write as run
    elif options.grid:
        from pyweb.cli.bench_grid import run
    elif options.peers:
        from pyweb.cli.bench_peers import run
    else:
        run = _here
    progress = Progress()
    try:
        subject = subject_of(options.model, options.shape, progress)
        run(options, subject, progress)
    finally:
        progress.finish()


def _check(options: Namespace) -> None:
    if options.grid and (options.peers or options.folder):
        raise UsageError("A Grid runs neither peers nor a folder.", "Leave out --grid, or --peers and --folder.")
    if options.host and not options.grid:
        raise UsageError("--host is the address that a Grid's browsers open.", "Add --grid, or leave it out.")
    if options.peers and (options.smoke or options.prompts or options.parts):
        raise UsageError(
            "Peers are compared in decoding and first token only.", "Leave out --smoke, --parts, --prompts."
        )
    if (options.onnx or options.webllm_lib) and not options.peers:
        raise UsageError("A model for a peer needs the peer.", "Add --peers.")


def _here(options: Namespace, subject: Subject, progress: Progress) -> None:
    layout = Layout(subject.models, prompts_of(options.prompts))
    switches = browsers.flags(browsers.pick_adapter(options.adapter), options.checks)
    with ExitStack() as stack:
        server = stack.enter_context(LocalServer(layout.resolve, options.port))
        # A first visit is one with nothing kept.
        fresh = options.fresh or options.visits
        opened = stack.enter_context(pages(switches, fresh, progress, options.timeout))
        result = opened.run(address(server.url, PAGE, bench_query(options, subject)), "benchmark")
    progress.finish()
    show(result, markdown(result["tables"]), options)


def bench_query(options: Namespace, subject: Subject) -> dict[str, object]:
    """The query string of the benchmark's page."""
    given = {"parts": options.parts, "runs": options.runs, "tokens": options.tokens, "visits": int(options.visits)}
    chosen = {name: value for name, value in given.items() if value}
    prompts = {"prompts": PROMPTS} if options.prompts else {}
    return subject.query() | (SMOKE if options.smoke else {}) | chosen | prompts


def prompts_of(path: str | None) -> dict[str, Path]:
    """What `Layout` serves of a file of prompts.

    Raises:
        UsageError: it can't be read, or isn't JSON lines with an instruction each.
    """
    if not path:
        return {}
    try:
        lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"The prompts {path} can't be read: {reason}.", "Give UTF-8 JSON lines.") from error
    if not lines or not all(isinstance(line, dict) and line.get("instruction") for line in lines):
        raise UsageError(f"The prompts {path} lack an instruction.", "Each line is {id, instruction, page}.")
    return {PROMPTS: Path(path)}


def show(result: object, tables: str, options: Namespace) -> None:
    """Prints tables or one line of JSON, and writes the JSON where a file was named for it."""
    line = json.dumps(result, ensure_ascii=False)
    print(line if options.json else tables, flush=True)
    if options.out:
        with files.whole_file(Path(options.out)) as file:
            file.write(f"{line}\n".encode())
        note(f"The JSON is in {options.out}.")
