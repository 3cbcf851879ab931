"""The decoding loop: windows of steps, the next one submitted before the last one is read."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyweb.device import Device
from pyweb.engine.modes import Mode, Steering
from pyweb.engine.pacing import Pacer, run_pieces
from pyweb.engine.programs import Programs
from pyweb.engine.suggestions import Suggestions
from pyweb.plan.control import LONGEST_PATH, READBACK_BYTES, STATE, State, parse_nodes, parse_state
from pyweb.plan.sampling import Stages

__all__ = ["Decoding", "Generation", "Watch"]


Watch = Callable[[list[tuple[int, int]], tuple[int, int, int] | None, list[int]], None]


@dataclass
class Generation:
    """A reply and what it took. Times in seconds.

    `reused` prompt tokens were in the KV cache already. `records` has (tokens emitted, match length of the best draft
    candidate, width) of every step, `windows` (width, steps that emitted, seconds since the window before was complete)
    of every window. A frame budget left the GPU alone for `paused` seconds and took it down to `least_share` of it.
    """

    ids: list[int] = field(default_factory=list)
    finish_reason: str = ""
    mode: str = ""
    reused: int = 0
    records: list[tuple[int, int, int]] = field(default_factory=list)
    windows: list[tuple[int, int, float]] = field(default_factory=list)
    prefill_time: float = 0.0
    first_token_time: float = 0.0
    decode_time: float = 0.0
    paused: float = 0.0
    least_share: float = 1.0

    @property
    def steps(self) -> int:
        """Decode steps that emitted a token."""
        return len(self.records)

    @property
    def widths(self) -> Counter:
        """Steps by width."""
        return Counter(width for _emitted, _match, width in self.records)

    @property
    def tokens_per_second(self) -> float:
        """Tokens after the first window's over the time since that window."""
        first = self.records[0][0] if self.records else 0
        rest = len(self.ids) - first
        return rest / self.decode_time if rest > 0 and self.decode_time > 0 else 0.0


class _Window(NamedTuple):
    """A window in flight, or the last of the pieces of its one step: the earlier ones took `worked` seconds. It was
    `submitted` at a time of the pacer's clock, `queued` behind another window."""

    ticket: int
    width: int
    steps: int
    pieces: int
    submitted: float
    worked: float
    queued: bool


@dataclass
class Decoding:
    """One reply's loop.

    Args:
        control: the control buffer.
        window: steps of a window.
        steering: chooses each window's width.
        context: tokens that fit.
        remembered: tokens of the drafter's memory; None where steps carry no draft.
        stages: of sampling; None chooses greedily.
        watch: called after each window of one step with the (token, parent) nodes of the next step's tree, the step's
            record and the tokens it emitted; where steps carry drafts also before the first, whose record is None.
        suggestions: of a drafter of the caller's own.
        pacer: says how much of the GPU the reply may take.
    """

    device: Device
    programs: Programs
    control: int
    mode: Mode
    window: int
    steering: Steering
    prompt_length: int
    context: int
    stops: Sequence[int]
    remembered: int | None = None
    stages: Stages | None = None
    watch: Watch | None = None
    suggestions: Suggestions | None = None
    pacer: Pacer = field(default_factory=Pacer)
    emitted: list[int] = field(default_factory=list, init=False)

    async def run(
        self, result: Generation, on_tokens: Callable[[list[int]], int | None], stopped: Callable[[], bool]
    ) -> None:
        """Runs windows until the reply is finished and fills `result`; `emitted` are all tokens, a stop token too."""
        clock = self.pacer.clock
        pending: deque[_Window] = deque()
        start = last = clock()
        first_at = 0.0
        self.steering.begin()
        if self.watch and self.remembered is not None:
            await self._watch_first()
        await self._fill(pending, result)
        while not result.finish_reason:
            done = pending.popleft()
            data = await self.device.collect(done.ticket)
            state = parse_state(data[-READBACK_BYTES:])
            now = clock()
            new = self._take(result, state, done, now - last)
            if not result.finish_reason:
                worked = done.worked + now - max(last, done.submitted)
                self.pacer.completed(done.width, done.submitted, worked, done.steps, done.pieces)
            last = now
            if not first_at and result.records:
                first_at = now
                result.first_token_time = now - start
            if self.suggestions:
                self.suggestions.observe(new)
            # Before the text is shown: that takes the host longer than some windows take the GPU.
            if not result.finish_reason and self.pacer.at_ease:
                await self._fill(pending, result)
            kept = on_tokens(new) if new else None
            if kept is not None:
                del result.ids[kept:]
                result.finish_reason = "stop"
            if self.watch and result.windows[-1][1]:
                self.watch(parse_nodes(data, state.valid), result.records[-1], new)
            if not result.finish_reason and stopped():
                result.finish_reason = "cancelled"
            if not result.finish_reason:
                await self._fill(pending, result)
        result.decode_time = clock() - first_at
        while pending:
            await self.device.collect(pending.popleft().ticket)

    async def _watch_first(self) -> None:
        """Shows the tree of the first step."""
        data = await self.device.collect(self.device.submit(0, 1, (self.control, 0, STATE + READBACK_BYTES)))
        self.watch(parse_nodes(data, parse_state(data[STATE:]).valid), None, [])

    async def _fill(self, pending: deque[_Window], result: Generation) -> None:
        """Submits windows: as many ahead as the mode has, or a single one behind a rest while frames come late."""
        # Suggestions are as old as the windows that were submitted before.
        most = min(self.mode.depth, 2) if self.suggestions else self.mode.depth
        while len(pending) < self.pacer.depth(most):
            await self.pacer.rest()
            pending.append(await self._submit(len(result.ids), pending))

    async def _submit(self, emitted: int, pending: Sequence[_Window]) -> _Window:
        width = self.steering.width()
        steps, pieces = self.pacer.division(width, self.window)
        ahead = sum(other.steps * _most(other.width) for other in pending) + steps * _most(width)
        length = min(self.prompt_length + emitted + ahead, self.context) + width
        programs = await self.programs.step_pieces(pieces, width, length, self.remembered, self.stages)
        worked = await run_pieces(self.device, self.pacer, programs[:-1])
        readback = (0, STATE + READBACK_BYTES) if self.watch else (STATE, READBACK_BYTES)
        submitted = self.pacer.clock()
        ticket = self.device.submit(programs[-1], steps, (self.control, *readback))
        return _Window(ticket, width, steps, len(programs), submitted, worked, bool(pending))

    def _take(self, result: Generation, state: State, done: _Window, seconds: float) -> list[int]:
        """Moves a window's news into the result; the new ids without the stop token."""
        new = state.tokens(len(self.emitted))
        records = state.records(result.steps)
        # A window cut short by the reply's end, or one that the GPU had to wait for, doesn't show what its steps cost.
        if done.queued and done.pieces == 1 and len(records) == done.steps:
            self.steering.completed(done.width, len(records), 1000 * seconds)
        self.steering.observe(records)
        self.emitted += new
        result.ids += new
        result.records += records
        result.windows.append((done.width, len(records), seconds))
        result.finish_reason = state.finish_reason or ""
        if result.finish_reason == "stop" and new and new[-1] in self.stops:
            result.ids.pop()
            return new[:-1]
        return new


def _most(width: int) -> int:
    """The most tokens that a step of `width` nodes emits."""
    return min(width, LONGEST_PATH)
