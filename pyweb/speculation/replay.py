"""Acceptance simulation: recorded replies, replayed against drafters (paper, "Acceptance Simulation").

The reply's first token comes from the prefill. From then on a step accepts the longest drafted path that spells the
recorded reply and gets one token more from the model, which is exactly what greedy verification does on the GPU.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyweb.speculation.drafter import Drafter, Start
from pyweb.speculation.fixed import FixedDrafter
from pyweb.speculation.lookup import PromptLookup
from pyweb.speculation.memory import Memory
from pyweb.speculation.mixing import ContextMixing
from pyweb.speculation.suffix import SuffixTree
from pyweb.speculation.traces import Trace

__all__ = ["Entry", "Tally", "known_drafters", "replay", "steps_of"]


@dataclass(frozen=True)
class Entry:
    """A drafter in the replay, and the node counts to count steps for."""

    start: Start
    widths: tuple[int, ...]


class Tally:
    """Tokens and steps by drafter, node count and task."""

    def __init__(self):
        self._sums: dict[str, dict[str, list[int]]] = {}

    def add(self, task: str, name: str, tokens: int, steps: int) -> None:
        """Counts one reply."""
        sums = self._sums.setdefault(task, {}).setdefault(name, [0, 0])
        sums[0] += tokens
        sums[1] += steps

    @property
    def tasks(self) -> dict[str, dict[str, float]]:
        """Tokens per step by task and column; 1 for a task whose replies take no step."""
        return {
            task: {name: tokens / steps if steps else 1.0 for name, (tokens, steps) in row.items()}
            for task, row in self._sums.items()
        }

    @property
    def mean(self) -> dict[str, float]:
        """Mean of the tasks by column."""
        rows = list(self.tasks.values())
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def known_drafters() -> dict[str, Entry]:
    """The reference, the GPU's twin and the baselines, with nothing learned yet."""
    return {
        "lookup": Entry(PromptLookup, (8,)),
        "suffix": Entry(SuffixTree(), (16,)),
        "mix": Entry(ContextMixing(), (8, 16, 32)),
        "gpu": Entry(FixedDrafter, (8, 16, 32)),
    }


def steps_of(drafter: Drafter, prompt: Sequence[int], reply: Sequence[int], widths: Sequence[int]) -> list[int]:
    """Steps that the reply takes at each width.

    All widths share the drafter: its widest tree is drawn wherever one of them stands, and each takes the first
    nodes of it. The whole reply is observed in the end.
    """
    drafter.observe(prompt)
    steps = [0] * len(widths)
    fronts = [0] * len(widths)  # last committed token of each width
    last, seen, front = len(reply) - 1, 0, 0
    while front < last:
        drafter.observe(reply[seen : front + 1])
        seen = front + 1
        path = drafter.draft(max(widths)).check().accepted(reply[seen:])
        for i, width in enumerate(widths):
            if fronts[i] == front:
                fronts[i] += 1 + sum(node < width for node in path)
                steps[i] += 1
        front = min(fronts)
    if seen <= last:
        drafter.observe(reply[seen:])
    return steps


def replay(
    traces: Iterable[Trace],
    drafters: Mapping[str, Entry],
    with_memory: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Tally:
    """Replays the traces in their order.

    Args:
        traces: recorded prompts and replies.
        drafters: by name; a column is called "name-width".
        with_memory: let the drafters see the last 32,768 reply tokens before each reply.
        progress: told how many replies are done.
    """
    memory, tally = Memory(), Tally()
    for done, trace in enumerate(traces, 1):
        for name, entry in drafters.items():
            steps = steps_of(entry.start(memory.tokens), trace.prompt, trace.reply, entry.widths)
            for width, count in zip(entry.widths, steps, strict=True):
                tally.add(trace.task, f"{name}-{width}", max(0, len(trace.reply) - 1), count)
        if with_memory:
            memory.add(trace.reply)
        progress(done)
    return tally
