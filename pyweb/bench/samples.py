"""Medians with their spread."""

from collections.abc import Sequence
from statistics import median

__all__ = ["summary"]


def summary(samples: Sequence[float]) -> dict[str, object]:
    """`median`, `min`, `max` and the `samples` themselves.

    Raises:
        ValueError: there are none.
    """
    if not samples:
        raise ValueError("no sample")
    return {"median": median(samples), "min": min(samples), "max": max(samples), "samples": list(samples)}
