"""How much of the GPU a reply may take, so that the page's frames come in time (docs/responsiveness.md)."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from math import ceil, inf
from time import perf_counter

from pyweb.device import Device
from pyweb.errors import UsageError

__all__ = ["Pacer", "run_pieces"]

LEAST_SHARE = 0.1
MOST_PIECES = 32
_TOLERATED = 1  # late frames in a piece of news: single ones come without a cause in the engine as well
_LEAST_CUT, _MOST_CUT = 0.15, 0.5
_NEAR = 0.9  # of the share that was too much
_QUICK, _SLOW = 0.1, 0.005  # added to the share by news of frames in time, below and above that
_FASTER = 1.5  # growth of the slow step, once what was too much is no longer
_NEWS = 0.25  # seconds that news speak of at most
_TRIAL = 60  # frames from which a part of late ones is concluded
_FEW, _MUCH_FEWER = 0.03, 0.5  # late ones: so few are well, and yielding must leave this part of them
_KEPT = 600  # frames
_TRUCE, _LONGEST_TRUCE = 5.0, 60.0  # seconds
_WEIGHT, _MOST_RISE = 0.2, 2.0  # of a new cost


class _Seen:
    """Frames, and how many of them were late; older ones count less."""

    def __init__(self):
        self.frames = self.late = 0.0

    def add(self, frames: int, late: int) -> None:
        fade = 1 if self.frames < _KEPT else 0.5
        self.frames, self.late = fade * self.frames + frames, fade * self.late + late

    @property
    def part(self) -> float:
        return self.late / self.frames


class Pacer:
    """The share of the GPU that an engine takes: all of it, until news of late frames come.

    Within a frame of `budget` seconds the engine works for `share * budget` and leaves the GPU alone for the rest. A
    late frame cuts the share in proportion to how many of them were late; frames in time raise it, quickly to nearly
    what was too much, slowly from there on. Steps longer than their part of a frame are cut into pieces. Where frames
    come late as often beside the least share, the engine isn't why: it takes all of the GPU and tries again later.

    Args:
        budget: seconds that a frame may take; None never yields, whatever the news.
        clock: gives seconds.
        sleep: awaits seconds.

    Raises:
        UsageError: a budget that is no time.
    """

    def __init__(
        self,
        budget: float | None = None,
        clock: Callable[[], float] = perf_counter,
        sleep: Callable = asyncio.sleep,
    ):
        if budget is not None and not 0.001 <= budget <= 1:
            raise UsageError(
                f"A frame takes 1 to 1000 milliseconds, not {1000 * budget:g}.", "Give 16.7 for 60 frames a second."
            )
        self.budget = budget
        self.share = 1.0
        self.clock, self._sleep = clock, sleep
        self._costs: dict[Hashable, float] = {}  # seconds of a step
        self._too_much, self._step = 1.0, _SLOW
        self._cut_at, self._deaf_until = -inf, -inf
        self._all, self._least, self._truce = _Seen(), _Seen(), _TRUCE  # frames beside all and the least of the GPU
        self.begin()

    def begin(self) -> None:
        """A reply starts: `least_share` and `paused` (seconds) speak of it alone."""
        self.least_share, self.paused = self.share, 0.0

    @property
    def at_ease(self) -> bool:
        """Whether frames come in time without a pause, so that the GPU may be given work ahead."""
        return self.share == 1

    def depth(self, most: int) -> int:
        """How many of `most` submissions may be in flight."""
        if self.budget is None:
            return most
        return min(most, 2 if self.at_ease else 1)

    def hear(self, frames: int, late: int) -> None:
        """News of the page: so many frames since the last news, so many of them late."""
        if self.budget is None or frames < 1:
            return
        if self.at_ease:
            self._all.add(frames, late)
        if self.clock() < self._deaf_until:
            return
        if self.share < 2 * LEAST_SHARE and self._in_vain(frames, late):
            self.release()
            self._deaf_until = self.clock() + self._truce
            self._truce = min(2 * self._truce, _LONGEST_TRUCE)
        elif late > _TOLERATED:
            self._cut(min(late / frames, 1))
        else:
            self._raise()

    def release(self) -> None:
        """Nobody sees the page: all of the GPU."""
        self.share = self._too_much = 1.0
        self._step, self._deaf_until = _SLOW, -inf

    def _in_vain(self, frames: int, late: int) -> bool:
        """Whether the least share leaves too many frames late, and not much fewer than all of the GPU does."""
        self._least.add(frames, late)
        if self._least.frames < _TRIAL:
            return False
        part, self._least = self._least.part, _Seen()
        known = self._all.frames >= _TRIAL
        in_vain = part > _FEW and not (known and part < _MUCH_FEWER * self._all.part)
        if not in_vain:
            self._truce = _TRUCE
        return in_vain

    def _cut(self, fraction: float) -> None:
        if self.share == LEAST_SHARE:
            return
        self._too_much, self._step = self.share, _SLOW
        self.share = max(LEAST_SHARE, self.share * (1 - max(_LEAST_CUT, _MOST_CUT * fraction)))
        self.least_share = min(self.least_share, self.share)
        # What is in flight was submitted before: news of the frames that it delays mustn't cut again.
        self._cut_at, self._deaf_until = self.clock(), inf

    def _raise(self) -> None:
        near = _NEAR * self._too_much
        if self.share + _SLOW < near:
            self.share = min(self.share + _QUICK, near)
            return
        if self.share > self._too_much:
            self._step = min(self._step * _FASTER, _QUICK)
        self.share = min(self.share + self._step, 1.0)

    def division(self, kind: Hashable, most: int) -> tuple[int, int]:
        """How many of `most` steps the next submission holds, and into how many submissions a single one is cut.

        At ease two submissions may be in flight, which together take no longer than a frame.

        Args:
            kind: of step, by what determines its cost.
        """
        if self.budget is None:
            return most, 1
        if kind not in self._costs:
            return 1, 1
        part = self.budget * (0.5 if self.at_ease else self.share)
        cost = self._costs[kind]
        if cost <= part:
            return min(most, int(part / cost)), 1
        pieces = 1 << (ceil(cost / part) - 1).bit_length()  # powers of two: programs of few divisions are kept
        return 1, min(pieces, MOST_PIECES)

    def completed(self, kind: Hashable, submitted: float, seconds: float, steps: int, pieces: int) -> None:
        """A submission is done.

        Args:
            submitted: when its first piece was, on the pacer's clock.
            seconds: that it took the GPU, pauses left out.
            steps: that it held.
            pieces: into how many submissions the one step was cut.
        """
        if self.budget is None:
            return
        cost, known = max(seconds, 1e-6) / steps, self._costs.get(kind)
        if known is None:
            self._costs[kind] = cost
        elif pieces > 1:  # with the wait for each piece: the step itself costs no more than this
            self._costs[kind] = min(known, cost)
        else:
            self._costs[kind] = known + _WEIGHT * (min(cost, _MOST_RISE * known) - known)
        if self._deaf_until == inf and submitted >= self._cut_at:
            self._deaf_until = self.clock() + _NEWS

    async def rest(self) -> None:
        """Leaves the GPU alone for what remains of a frame."""
        if self.budget is None or self.at_ease:
            return
        start = self.clock()
        await self._sleep((1 - self.share) * self.budget)
        self.paused += self.clock() - start


async def run_pieces(device: Device, pacer: Pacer, programs: Sequence[int]) -> float:
    """Runs programs one after the other, each with a rest behind it; the seconds that they took without the rests."""
    worked = 0.0
    for program in programs:
        start = pacer.clock()
        await device.collect(device.submit(program))
        worked += pacer.clock() - start
        await pacer.rest()
    return worked
