"""What a step costs on this device: T(N) for every width, and the window that loses little time between windows."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import median
from time import perf_counter

from pyweb.device import Device
from pyweb.engine.modes import DEPTH
from pyweb.engine.programs import Programs
from pyweb.kernels.tuning import WIDTHS

__all__ = ["Calibration", "calibrate_costs", "calibrate_window", "measure_drafting", "warm_up"]

SOFTWARE_WIDTHS = (1, 2, 4, 8)
_WINDOWS = (1, 2, 4)
_TOLERANCE = 1.1  # the smallest window within a tenth of the fastest: small ones follow the text sooner
SAMPLES, REPEATS = 5, 4  # browsers report completions late by up to some milliseconds: one step is too short a sample
_DRAFTS = 20  # in one submission, so that the host's share of one is small
_WAKE, _MOST_WAKES, _WAKES_IN_FLIGHT = 0.1, 50, 3  # seconds, submissions
_LEAST = 0.01  # milliseconds: completions can be reported together
_WINDOW_STEPS, _WINDOW_WIDTH = 32, 8


@dataclass(frozen=True)
class Calibration:
    """Measured once for an adapter, model and version. `costs`: width to milliseconds; `window` in steps."""

    costs: dict[int, float]
    window: int

    def to_dict(self) -> dict[str, object]:
        """Plain data for a store."""
        return {"costs": {str(width): cost for width, cost in self.costs.items()}, "window": self.window}

    @classmethod
    def from_dict(cls, data: dict) -> "Calibration":
        """What `to_dict` made.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: it was something else.
        """
        costs = {int(width): float(cost) for width, cost in data["costs"].items()}
        window = data["window"]
        measured = 1 in costs and set(costs) <= set(WIDTHS) and all(0 < cost < inf for cost in costs.values())
        if not measured or type(window) is not int or window not in _WINDOWS:
            raise ValueError("no calibration")
        return cls(costs, window)


async def calibrate_costs(
    device: Device,
    programs: Programs,
    begin: Callable[[], None],
    widths: Sequence[int],
    samples: int = SAMPLES,
    repeats: int = 1,
) -> dict[int, float]:
    """Milliseconds of a step of each width, all nodes valid, drafting included.

    All is submitted together, since a step that waits for the one before costs a read-back more. A sample is the
    interval between two completions of `repeats` steps. Completions are often reported in pairs, so that every other
    interval is too short: the cost is the least mean of two in a row, which one late report doesn't touch either.

    Args:
        begin: writes a prompt long enough for `samples` + 1 steps of the widest width.
        widths: one that comes twice costs the less of both, as the first does where the GPU wasn't awake yet.
    """
    costs: dict[int, float] = {}
    for width in widths:
        program = await programs.calibration(width)
        begin()
        # One more than the samples: the first run of a pipeline is none.
        tickets = [device.submit(program, repeats) for _ in range(samples + (samples > 1))]
        times = [perf_counter()]
        for ticket in tickets:
            await device.collect(ticket)
            times.append(perf_counter())
        intervals = [1000 * (after - before) / repeats for before, after in pairwise(times)]
        cost = max(_least_pair(intervals[1:] or intervals), _LEAST)
        costs[width] = min(cost, costs.get(width, cost))
    return _rising(costs)


def _rising(costs: dict[int, float]) -> dict[int, float]:
    """Nearly all that disturbs a measurement adds to it, so a step costs no more than a wider one that took time."""
    return {
        width: min([cost, *(other for wider, other in costs.items() if wider > width and other > _LEAST)])
        for width, cost in costs.items()
    }


def _least_pair(intervals: Sequence[float]) -> float:
    return min((sum(pair) / 2 for pair in pairwise(intervals)), default=intervals[0])


async def warm_up(device: Device, programs: Programs, begin: Callable[[], None]) -> None:
    """Keeps the GPU busy for a moment: its clock rises slowly, and the first width measured would pay for that."""
    program = await programs.calibration(1)
    start, pending = perf_counter(), deque()
    for _ in range(_MOST_WAKES):
        begin()
        pending.append(device.submit(program, REPEATS))
        if len(pending) == _WAKES_IN_FLIGHT:
            await device.collect(pending.popleft())
            if perf_counter() - start > _WAKE:
                break
    while pending:
        await device.collect(pending.popleft())


async def measure_drafting(
    device: Device, programs: Programs, begin: Callable[[int], object], sizes: Sequence[int]
) -> dict[int, float]:
    """Milliseconds that drafting adds to a step, by the tokens of memory that its scan reads beside the context.

    Args:
        begin: async, writes a prompt and a memory of so many tokens.
    """
    costs = {}
    for size in sizes:
        await begin(size)
        program = await programs.drafting_alone(size, _DRAFTS)
        tickets = [device.submit(program) for _ in range(SAMPLES)]
        times = []
        for ticket in tickets:
            await device.collect(ticket)
            times.append(perf_counter())
        costs[size] = median(1000 * (after - before) / _DRAFTS for before, after in pairwise(times))
    return costs


async def calibrate_window(
    device: Device, programs: Programs, begin: Callable[[], None], readback: Sequence[int]
) -> int:
    """The smallest window within a tenth of the fastest one, by steps that are driven as a reply's are.

    Args:
        begin: as in `calibrate_costs`.
        readback: (buffer, offset, size) that comes back with every window.
    """
    program = await programs.calibration(_WINDOW_WIDTH)
    times = {}
    for window in _WINDOWS:
        begin()
        times[window] = await _pace(device, program, window, readback)
    fastest = min(times.values())
    return next(window for window in _WINDOWS if times[window] <= _TOLERANCE * fastest)


async def _pace(device: Device, program: int, window: int, readback: Sequence[int]) -> float:
    """Seconds a step in windows of so many, as many of them in flight as in a reply."""
    left = _WINDOW_STEPS // window
    pending = deque(device.submit(program, window, readback) for _ in range(DEPTH))
    completed = []
    while pending:
        await device.collect(pending.popleft())
        completed.append(perf_counter())
        if left > len(completed) + len(pending):
            pending.append(device.submit(program, window, readback))
    return (completed[-1] - completed[0]) / (len(completed) - 1) / window
