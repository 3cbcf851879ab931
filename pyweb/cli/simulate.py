"""`pyweb simulate`: tokens per step of the drafters on recorded replies."""

import json
from argparse import Namespace
from pathlib import Path

from pyweb.cli.console import Progress
from pyweb.speculation.replay import Tally, known_drafters, replay
from pyweb.speculation.traces import read_traces

__all__ = ["simulate"]


def simulate(options: Namespace) -> None:
    """Replays a trace file and prints tokens per step by task, and their mean.

    Raises:
        UsageError: the file is not a trace file.
    """
    traces = read_traces(Path(options.traces).expanduser())
    progress = Progress()
    tally = replay(
        traces,
        known_drafters(),
        options.memory,
        lambda done: progress.update("replaying", done, len(traces)),
    )
    progress.finish()
    print(_table(tally))
    if options.json:
        print(json.dumps({"mean": _rounded(tally.mean), "tasks": {t: _rounded(r) for t, r in tally.tasks.items()}}))


def _table(tally: Tally) -> str:
    """Tokens per step: a line per task, a column per drafter and node count."""
    columns = list(tally.mean)
    rows = [*sorted(tally.tasks.items()), ("mean", tally.mean)]
    first = max(len(name) for name, _ in rows)
    lines = ["  ".join(["task".ljust(first), *(name.rjust(9) for name in columns)])]
    lines += ["  ".join([name.ljust(first), *(f"{row[c]:.3f}".rjust(9) for c in columns)]) for name, row in rows]
    return "\n".join(lines)


def _rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in row.items()}
