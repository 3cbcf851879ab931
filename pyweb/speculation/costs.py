"""What a step costs: T(N), milliseconds for each tree width, measured and then refined while decoding.

The load-time measurement can be off (another program used the GPU, the clock
was still climbing), and a clock changes later. The interval between the
completions of two consecutive windows is the cost of the later one as the
device runs at that moment (paper, "Feedback Control of Speculation Width"), so
every window is a sample.
"""

from collections.abc import Mapping, Sequence
from math import isfinite, log
from statistics import median

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS

__all__ = ["Costs", "costs_key"]

# The median of five ignores two bad samples in a row: a collection of garbage, a
# tab that came to the front.
SAMPLES = 5
SMOOTHING = 0.2
# A width that wasn't sampled for so many windows follows the drift of the others.
MEMORY = 50.0


def costs_key(adapter: str, model: str, version: str) -> str:
    """Key under which a browser keeps the costs: another of the three means other costs."""
    return "\n".join(("costs", adapter, model, version))


class Costs:
    """T(N) in milliseconds a step, for every width.

    Args:
        measured: width to milliseconds, at least one; other widths are interpolated,
            linearly in the logarithms, and beyond the measured ones by the nearest slope.
        widths: the widths to answer for.

    Raises:
        UsageError: nothing measured, or a cost that isn't a positive number.
    """

    def __init__(self, measured: Mapping[int, float], widths: Sequence[int] = WIDTHS):
        if not measured or not all(_valid(cost) for cost in measured.values()):
            raise UsageError("Step costs must be positive numbers of milliseconds, for one width or more.")
        self.widths = tuple(sorted({*widths, *measured}))
        self._cost = {width: interpolate(measured, width) for width in self.widths}
        self._samples: dict[int, list[float]] = {width: [] for width in self.widths}
        self._age = {width: 0 if width in measured else MEMORY for width in self.widths}

    def __getitem__(self, width: int) -> float:
        """Milliseconds a step of `width` nodes."""
        return self._cost[width]

    def ratio(self, width: int) -> float:
        """T(width) / T(1)."""
        return self._cost[width] / self._cost[1] if 1 in self._cost else 1.0

    def refine(self, width: int, steps: int, milliseconds: float) -> None:
        """Folds in the interval between the completions of a window and the one before it.

        The sample that counts is the median of the last few of that width, which is folded in by an
        exponential moving average. Widths that weren't sampled for long move along in part: a change
        of clock changes them all, and a stale cost would keep the controller from looking again.

        Args:
            width: of the window.
            steps: its live steps; a window without any is no sample.
            milliseconds: of the interval.
        """
        if width not in self._cost or steps < 1 or not _valid(milliseconds):
            return
        samples = self._samples[width]
        samples.append(milliseconds / steps)
        del samples[:-SAMPLES]
        if len(samples) < min(3, SAMPLES):
            return
        before = self._cost[width]
        self._cost[width] += SMOOTHING * (median(samples) - before)
        self._drift(width, self._cost[width] / before)

    def _drift(self, sampled: int, factor: float) -> None:
        for width, age in self._age.items():
            if width == sampled:
                self._age[width] = 0
            else:
                self._age[width] = min(age + 1, MEMORY)
                self._cost[width] *= factor ** (age / MEMORY)

    def to_dict(self) -> dict[str, float]:
        """Plain data for a database: width, as text, to milliseconds."""
        return {str(width): cost for width, cost in self._cost.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> "Costs":
        return cls({int(width): float(cost) for width, cost in data.items()})


def _valid(cost: float) -> bool:
    return isfinite(cost) and cost > 0


def interpolate(measured: Mapping[int, float], width: int) -> float:
    """Cost of a width between or beyond measured ones; one measurement alone scales with nothing."""
    if width in measured:
        return float(measured[width])
    known = sorted(measured)
    if len(known) == 1:
        return float(measured[known[0]])
    above = next((index for index, at in enumerate(known) if at > width), len(known) - 1)
    low, high = known[max(above - 1, 0)], known[max(above, 1)]
    slope = log(measured[high] / measured[low]) / log(high / low)
    return measured[low] * (width / low) ** slope
