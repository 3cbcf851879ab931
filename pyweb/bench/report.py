"""The result of a benchmark as tables, the same on the page and on the command line.

A result is JSON: `format`, `machine`, `model`, `settings` and a section for each part that was measured: `visits` and
`frames`, which the page measures, `widths`, `modes`, `prefill`, `roles`, `host`, `cuts`, which the modules of these
names describe. Every compared time is a summary (`pyweb.bench.samples`), in milliseconds unless its name says
otherwise.
"""

from collections.abc import Iterable, Mapping

__all__ = ["FORMAT", "Table", "markdown", "spread", "tables"]

FORMAT = 1

_FLOORS = ("dispatch", "memory")

Table = dict[str, object]
"""`title`, `columns` (texts), `rows` (lists of texts, as many as there are columns) and `note` (may be empty)."""


def tables(result: Mapping) -> list[Table]:
    """The tables of those sections that a result has, in a fixed order."""
    return [table for name, make in _SECTIONS.items() if result.get(name) for table in make(result[name])]


def markdown(made: Iterable[Mapping]) -> str:
    """Tables as Markdown, each below its title."""
    return "\n\n".join(_markdown(table) for table in made)


def _markdown(table: Mapping) -> str:
    heads = [table["columns"], ["---", *["---:"] * (len(table["columns"]) - 1)]]
    lines = [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in [*heads, *table["rows"]]]
    parts = [f"### {table['title']}", "\n".join(f"| {line} |" for line in lines), table.get("note", "")]
    return "\n\n".join(filter(None, parts))


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], *notes: str) -> Table:
    texts = [[str(cell) for cell in row] for row in rows]
    return {"title": title, "columns": list(columns), "rows": texts, "note": " ".join(filter(None, notes))}


def _number(value: float | None) -> str:
    """Three significant digits and more before the point; a dash for what wasn't measured."""
    if value is None:
        return "–"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def spread(samples: Mapping | None) -> str:
    """Median, and least and most in brackets."""
    if not samples:
        return "–"
    middle, least, most = (_number(samples[name]) for name in ("median", "min", "max"))
    return f"{middle} ({least}–{most})"


def _median(row: Mapping) -> float:
    return row["milliseconds"]["median"]


def _left_out(names: Iterable[object]) -> str:
    listed = ", ".join(map(str, names))
    return f"Left out, since the context is too short: {listed}." if listed else ""


def _visits(visits: list[Mapping]) -> list[Table]:
    stages = list(dict.fromkeys(stage for visit in visits for stage in visit["seconds"]))
    rows = [[stage, *(_number(visit["seconds"].get(stage)) for visit in visits)] for stage in stages]
    rows.append(["together", *(_number(sum(visit["seconds"].values())) for visit in visits)])
    rows.append(["MB of the model fetched", *(_number(visit["fetched"] / 1e6) for visit in visits)])
    heads = ["seconds", *(f"visit {number}" for number in range(1, len(visits) + 1))]
    note = "From the start of the runtime on. Whatever the browser kept of an earlier run makes the first visit faster."
    return [_table("Until a question can be asked", heads, rows, note)]


def _widths(section: Mapping) -> list[Table]:
    rows = [
        [row["width"], spread(row["milliseconds"]), _number(row["ratio"]), _number(_median(row) / row["width"])]
        for row in section["rows"]
    ]
    note = f"Windows of {section['window']} steps, all nodes valid, without drafting; no window waits for another."
    return [_table("A step by its width", ["width N", "T(N), ms", "T(N) / T(1)", "ms a node"], rows, note)]


def _modes(section: Mapping) -> list[Table]:
    heads = ["mode", "ms a token", "tokens a step", "ms a step", "times as fast"]
    rows = [
        [
            row["mode"],
            spread(row["milliseconds"]),
            _number(row["tokens_per_step"]),
            _number(row["milliseconds_per_step"]),
            _number(row["speedup"]),
        ]
        for row in section["rows"]
    ]
    different = [task["id"] for task in section["tasks"] if task["different"]]
    same = f"Different ids: {', '.join(different)}." if different else "All modes gave the same ids."
    counted = "Whole windows behind the first one count; prefill doesn't."
    made = [_table("Decoding", heads, rows, counted, same, _left_out(section["left_out"]))]
    names = [row["mode"] for row in section["rows"]]
    per_task = [
        [
            task["id"],
            task["prompt_tokens"],
            task["reply_tokens"],
            *map(_number, map(task["tokens_per_step"].get, names)),
        ]
        for task in section["tasks"]
    ]
    return [*made, _table("Tokens a step by task", ["task", "prompt", "reply", *names], per_task)]


def _prefill(section: Mapping) -> list[Table]:
    heads = ["prompt tokens", "prefill, ms", "first token, ms", "prefill tokens a second"]
    rows = [
        [row["tokens"], spread(row["milliseconds"]), spread(row["first_token"]), _number(row["tokens_per_second"])]
        for row in section["rows"]
    ]
    note = "The first token is read back behind the prefill; the cache is not reused."
    return [_table("Prefill and first token", heads, rows, note, _left_out(section["left_out"]))]


def _roles(section: Mapping) -> list[Table]:
    heads = ["role", "dispatches", "ms", "dispatch floor, %", "weights, MB", "memory floor, %"]
    clock = (
        "GPU timestamps" if section["clock"] == "timestamps" else "wall time of large batches, for want of timestamps"
    )
    note = (
        f"By {clock}. Floors, as shares of the time: {_number(1000 * section['empty_gpu'])} µs a dispatch, and the "
        f"weights at the {_number(section['bandwidth'] / 1e9)} GB/s of a copy; a cache that holds them is faster. "
        f"A dispatch that does nothing takes {_number(1000 * section['empty_wall'])} µs of wall time."
    )
    made = []
    for step in section["widths"]:
        rows = [_role(row) for row in [*step["rows"], step["step"]]]
        made.append(_table(f"GPU time of a step of {step['width']} by kernel role", heads, rows, note))
    return made


def _role(row: Mapping) -> list[object]:
    dispatch, memory = (None if share is None else 100 * share for share in map(row["shares"].get, _FLOORS))
    weights = row["weight_bytes"] and row["weight_bytes"] / 1e6
    read = (_number(weights), _number(memory)) if weights else ("–", "–")
    return [row["role"], row["dispatches"], spread(row["milliseconds"]), _number(dispatch), *read]


def _host(section: Mapping) -> list[Table]:
    heads = ["mode", "steps a window", "ms a window", "Python", "bridge", "browser", "GPU alone"]
    shares = ("interval", "python", "bridge", "browser")
    rows = [
        [row["mode"], row["window"], *(spread(row[name]) for name in shares), _number(row["gpu"])]
        for row in section["rows"]
    ]
    note = (
        "Bridge: encoding and submitting in JavaScript. Browser: waiting for the window, while the browser's GPU "
        "process and the GPU work. Python: the rest, with the way between Python and JavaScript. GPU alone: its steps "
        "by timestamps, where kernel roles were measured before; several windows are in flight."
    )
    return [_table("Host time of a window", heads, rows, note)]


def _cuts(section: Mapping) -> list[Table]:
    heads = ["product", "width N", "cut in use", "T(N), ms", "best found", "T(N), ms", "change, %", "tried"]
    rows = []
    for row in section["rows"]:
        used, best = (" · ".join(map(str, row[name])) for name in ("cut", "best"))
        change = 100 * (row["best_milliseconds"]["median"] / row["milliseconds"]["median"] - 1)
        found = [best, spread(row["best_milliseconds"]), f"{change:+.1f}"] if best != used else ["the same", "–", "–"]
        rows.append([row["role"], row["width"], used, spread(row["milliseconds"]), *found, row["tried"]])
    note = (
        "Threads of a workgroup, rows and nodes whose sums a thread keeps, blocks of a row on their way at once. Whole "
        "steps are timed; what was found for one product stays while the next is searched."
    )
    return [_table("Cuts of the products", heads, rows, note)]


def _frames(section: Mapping) -> list[Table]:
    heads = ["window", "frame budget, ms", "frames a second", "median, ms", "99th percentile, ms", "ms a token"]
    heads += ["least share of the GPU"]
    names = ("fps", "p50", "p99", "msPerToken", "leastShare")
    named = [("idle", section.get("idle") or {}), *((row["window"], row) for row in section["rows"])]
    rows = [
        [name, _number(row.get("frameBudget")), *(_number(row.get(column)) for column in names)] for name, row in named
    ]
    note = "A second device submits a small pass every 16.7 ms while the model decodes; ms from one done to the next."
    if spin := next((row["spin"] for row in section["rows"] if row.get("spin")), None):
        note += f" The GPU is slowed: {spin} µs of idle work follow each dispatch."
    return [_table("Frames while decoding", heads, rows, note)]


_SECTIONS = {
    "visits": _visits,
    "modes": _modes,
    "widths": _widths,
    "prefill": _prefill,
    "roles": _roles,
    "host": _host,
    "cuts": _cuts,
    "frames": _frames,
}
