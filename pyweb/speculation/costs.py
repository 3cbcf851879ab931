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
# tab that came to the front. With less than three there is no telling which is bad.
SAMPLES, LEAST_SAMPLES = 5, 3
# One fold moves a cost by 6%, or 18% where it is stale and too high: such a width is tried rarely, so its
# few samples must count, while one that is too low gets used and corrects itself.
SMOOTHING, STALE_SMOOTHING, CLIP = 0.2, 0.6, 1.3
# After so many windows a width's cost is stale.
MEMORY = 50


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
        self.widths = tuple(sorted({1, *widths, *measured}))
        self._cost = {width: interpolate(measured, width) for width in self.widths}
        self._samples: dict[int, list[float]] = {width: [] for width in self.widths}
        self._age = {width: 0 if width in measured else MEMORY for width in self.widths}

    def __getitem__(self, width: int) -> float:
        """Milliseconds a step of `width` nodes."""
        return self._cost[width]

    def ratio(self, width: int) -> float:
        """T(width) / T(1)."""
        return self._cost[width] / self._cost[1]

    def refine(self, width: int, steps: int, milliseconds: float) -> None:
        """Folds in the interval between the completions of a window and the one before it.

        The sample that counts is the median of the last few of that width, clipped, and folded in by an
        exponential moving average.

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
        if len(samples) < LEAST_SAMPLES:
            return
        before, stale = self._cost[width], self._age[width] / MEMORY
        sample = min(max(median(samples), before / CLIP), before * CLIP)
        weight = max(SMOOTHING, STALE_SMOOTHING * stale) if sample < before else SMOOTHING
        self._cost[width] += weight * (sample - before)
        self._grow_old(width)

    def _grow_old(self, sampled: int) -> None:
        """A narrow step that wasn't sampled for long costs no more than a wide one: the clock rose."""
        for width in self.widths:
            self._age[width] = 0 if width == sampled else min(self._age[width] + 1, MEMORY)
            if width < sampled and self._age[width] == MEMORY:
                self._cost[width] = min(self._cost[width], self._cost[sampled])

    def to_dict(self) -> dict[str, dict]:
        """Plain data for a database: for every width, as text, its cost, last samples and age."""
        return {
            str(width): {"ms": cost, "samples": list(self._samples[width]), "age": self._age[width]}
            for width, cost in self._cost.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping]) -> "Costs":
        """The same costs again, to the bit."""
        self = cls({int(width): float(entry["ms"]) for width, entry in data.items()}, ())
        self._samples = {int(width): list(entry["samples"]) for width, entry in data.items()}
        self._age = {int(width): entry["age"] for width, entry in data.items()}
        return self


def _valid(cost: float) -> bool:
    return isfinite(cost) and cost > 0


def interpolate(measured: Mapping[int, float], width: int) -> float:
    """Cost of a width between or beyond measured ones; the only one measured stands for all."""
    if width in measured:
        return float(measured[width])
    known = sorted(measured)
    if len(known) == 1:
        return float(measured[known[0]])
    above = next((index for index, at in enumerate(known) if at > width), len(known) - 1)
    low, high = known[max(above - 1, 0)], known[max(above, 1)]
    slope = log(measured[high] / measured[low]) / log(high / low)
    return measured[low] * (width / low) ** slope
