"""Replays recorded replies under the controller, with made-up step costs: what would it have chosen?

A step at a position emits what its tree holds of the recorded continuation, and one token more, whatever
the steps before it were. So drafts are made once a position (`trace_steps`), and any controller, cost
curve and window size then runs over the table in seconds.
"""

import argparse
import gzip
import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.speculation.controller import Controller
from pyweb.speculation.costs import Costs

__all__ = ["CURVES", "Outcome", "ReplySteps", "compare", "read_traces", "simulate", "trace_steps"]

IN_FLIGHT = 3  # windows, as in the decoding loop

# T(N)/T(1) for the widths: a workstation, a laptop GPU, an integrated GPU.
CURVES = {
    "flat": (1.0, 1.04, 1.1, 1.2, 1.75, 3.2),
    "steady": (1.0, 1.12, 1.33, 1.7, 2.7, 5.0),
    "steep": (1.0, 1.3, 2.1, 4.1, 6.5, 12.0),
}
MOST_NODES = WIDTHS[-1]
LONGEST_MATCH = 8
MEMORY_TOKENS = 32_768


class Drafter(Protocol):
    """What the simulation asks of a drafter. A tree has `tokens` and `parents`; node 0 is the root."""

    def observe(self, tokens: Sequence[int]) -> None: ...
    def draft(self, nodes: int): ...


@dataclass(frozen=True)
class ReplySteps:
    """A reply as a table: what a step that starts at a position would emit.

    Attributes:
        task: the trace's task.
        matches: match length of the draft, a position each.
        tokens: a position each, tokens emitted for each of `WIDTHS`. The last position needs no step.
    """

    task: str
    matches: Sequence[int]
    tokens: Sequence[Sequence[int]]

    def milliseconds(self, index: int, cost: float) -> float:
        """Of the whole reply at the fixed width `WIDTHS[index]`."""
        position = steps = 0
        while position < len(self.tokens):
            position += self.tokens[position][index]
            steps += 1
        return steps * cost


@dataclass
class Outcome:
    """Milliseconds of a set of replies: under the controller, and at each fixed width."""

    controlled: float = 0.0
    fixed: list[float] = field(default_factory=lambda: [0.0] * len(WIDTHS))
    steps: Counter = field(default_factory=Counter)

    @property
    def best_width(self) -> int:
        return WIDTHS[self.fixed.index(min(self.fixed))]

    @property
    def against_best(self) -> float:
        """Time over the best fixed width's in hindsight, less one."""
        return self.controlled / min(self.fixed) - 1.0

    @property
    def against_plain(self) -> float:
        return self.controlled / self.fixed[0] - 1.0


class Matches:
    """Length of the longest suffix that occurred before, up to eight tokens."""

    def __init__(self):
        self._tokens: list[int] = []
        self._seen: set[tuple[int, ...]] = set()
        self.longest = 0

    def observe(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._tokens.append(token)
            self.longest = 0
            for length in range(1, min(LONGEST_MATCH, len(self._tokens)) + 1):
                suffix = tuple(self._tokens[-length:])
                if suffix in self._seen:
                    self.longest = length
                self._seen.add(suffix)


def read_traces(path: str | Path) -> Iterator[dict]:
    """Recorded replies: JSON lines, gzipped, with `task`, `prompt` and `reply` (token ids)."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def trace_steps(
    traces: Iterable[Mapping],
    drafter_for: Callable[[Sequence[int]], Drafter],
    memory: bool = False,
) -> list[ReplySteps]:
    """Drafts at every position of every reply.

    Args:
        traces: as of `read_traces`.
        drafter_for: makes a reply's drafter, given the session memory's tokens; it then observes the
            prompt, and the reply token by token. Where the drafter has a `match_length`, that is
            recorded, else the longest earlier occurrence is looked up.
        memory: whether the tokens of earlier replies are given, the last 32,768.
    """
    remembered: list[int] = []
    table = []
    for trace in traces:
        table.append(_reply_steps(trace, drafter_for(remembered), remembered))
        if memory:
            remembered = (remembered + trace["reply"])[-MEMORY_TOKENS:]
    return table


def _reply_steps(trace: Mapping, drafter: Drafter, remembered: Sequence[int]) -> ReplySteps:
    reply = trace["reply"]
    matches, tokens = bytearray(), []
    scan = None if hasattr(drafter, "match_length") else Matches()
    for observer in (drafter, scan) if scan else (drafter,):
        observer.observe(trace["prompt"])
    if scan:
        scan.observe(remembered)
    for position in range(len(reply) - 1):
        drafter.observe(reply[position : position + 1])
        tree = drafter.draft(MOST_NODES)
        if scan:
            scan.observe(reply[position : position + 1])
        length = scan.longest if scan else drafter.match_length
        matches.append(min(length, 255))
        tokens.append(_emitted(tree, reply[position + 1 :]))
    return ReplySteps(trace["task"], bytes(matches), tokens)


def _emitted(tree, rest: Sequence[int]) -> bytes:
    """Tokens that steps of each width emit: the accepted path's nodes below the width, and one more."""
    children = {}
    for node in range(1, len(tree.tokens)):
        children.setdefault((tree.parents[node], tree.tokens[node]), node)
    path, node = [], 0
    for token in rest:
        node = children.get((node, token))
        if node is None:
            break
        path.append(node)
    return bytes(min(1 + sum(node < width for node in path), len(rest)) for width in WIDTHS)


def simulate(
    controller: Controller, reply: ReplySteps, costs: Sequence[float], window: int = 1
) -> tuple[float, Counter]:
    """Runs a reply in windows, IN_FLIGHT of them at a time: a choice is made before those ahead of it are read.

    Args:
        controller: keeps what it learned; it's told every window's time.
        reply: the table.
        costs: milliseconds a step, for each of `WIDTHS`.
        window: steps a submission.

    Returns:
        Milliseconds of the reply, and steps by width. What is left of a window after the reply's
        end is free.
    """
    controller.begin()
    in_flight = [controller.width() for _ in range(IN_FLIGHT)]
    milliseconds, steps, position = 0.0, Counter(), 0
    while in_flight:
        width = in_flight.pop(0)
        index = WIDTHS.index(width)
        records = []
        while len(records) < window and position < len(reply.tokens):
            emitted = reply.tokens[position][index]
            records.append((emitted, reply.matches[position], width))
            position += emitted
        elapsed = costs[index] * len(records)
        controller.completed(width, len(records), elapsed)
        controller.observe(records)
        milliseconds += elapsed
        steps[width] += len(records)
        if position < len(reply.tokens):
            in_flight.append(controller.width())
    return milliseconds, steps


def compare(
    replies: Sequence[ReplySteps], costs: Sequence[float], window: int = 1, widths: Sequence[int] = WIDTHS
) -> dict[str, Outcome]:
    """One session of a fresh controller over all replies, against fixed widths.

    Returns:
        An outcome for each task, and `all`.
    """
    controller = Controller(Costs(dict(zip(WIDTHS, costs, strict=True))), widths)
    outcomes: dict[str, Outcome] = {"all": Outcome()}
    for reply in replies:
        milliseconds, steps = simulate(controller, reply, costs, window)
        fixed = [reply.milliseconds(index, cost) for index, cost in enumerate(costs)]
        for name in ("all", reply.task):
            outcome = outcomes.setdefault(name, Outcome())
            outcome.controlled += milliseconds
            outcome.fixed = [old + new for old, new in zip(outcome.fixed, fixed, strict=True)]
            outcome.steps += steps
    return outcomes


def _line(curve: str, window: int, task: str, outcome: Outcome) -> str:
    total = sum(outcome.steps.values()) or 1
    shares = " ".join(f"{100 * outcome.steps[width] / total:4.0f}" for width in WIDTHS)
    return (
        f"{curve:8}{window:3}  {task:16}{outcome.best_width:6}{100 * outcome.against_best:+9.1f}"
        f"{100 * outcome.against_plain:+9.1f}   {shares}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m pyweb.speculation.control_simulation TRACES.jsonl.gz --drafter MODULE:CALLABLE`"""
    parser = argparse.ArgumentParser(description="The controller on recorded replies, with made-up costs.")
    parser.add_argument("traces", type=Path)
    parser.add_argument("--drafter", required=True, help="module:callable, from memory tokens to a drafter")
    parser.add_argument("--memory", action="store_true", help="draft from earlier replies too")
    parser.add_argument("--window", type=int, action="append", help="steps a submission (1)")
    parser.add_argument("--tasks", action="store_true", help="a line for each task, too")
    options = parser.parse_args(arguments)
    module, _, name = options.drafter.partition(":")
    if not name:
        raise UsageError("A drafter is named by module:callable.")
    drafter_for = getattr(importlib.import_module(module), name)
    replies = trace_steps(read_traces(options.traces), drafter_for, options.memory)
    print("curve window task             best  vs best% vs plain%  % of steps at 1 2 4 8 16 32")
    for curve, costs in CURVES.items():
        for window in options.window or [1]:
            for task, outcome in compare(replies, costs, window).items():
                if options.tasks or task == "all":
                    print(_line(curve, window, task, outcome), flush=True)


if __name__ == "__main__":
    main()
