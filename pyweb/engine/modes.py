"""How the steps of a reply are driven. The ids of the reply are the same in every mode."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS

__all__ = ["DEFAULT_WINDOW", "DEPTH", "FixedWidth", "Mode", "Steering", "parse_mode"]

DEFAULT_WINDOW = 4
DEPTH = 3  # windows in flight: with two the GPU waits while a browser records one that it runs as fast
MAX_WINDOW = 32
_FORMS = "greedy, loop, fixed:N and adaptive"


@dataclass(frozen=True)
class Mode:
    """A mode of decoding.

    `width` is None where a controller chooses it. `depth` windows of `window` steps are in flight; `window` is None
    where what was measured on the device decides.
    """

    name: str
    width: int | None
    window: int | None
    depth: int = DEPTH

    @property
    def drafts(self) -> bool:
        """Whether steps carry a draft tree."""
        return self.width != 1


def parse_mode(name: str, window: int | None = None) -> Mode:
    """The mode called `name`: "greedy" reads back after every token, "loop" once a window, "fixed:N" drafts trees of N
    nodes, "adaptive" lets the controller choose N.

    Raises:
        UsageError: no such mode, width or window.
    """
    if window is not None and not 1 <= window <= MAX_WINDOW:
        raise UsageError(f"A window has 1 to {MAX_WINDOW} steps, not {window}.")
    if name == "greedy":
        return Mode(name, 1, 1, depth=1)
    if name == "loop":
        return Mode(name, 1, window or DEFAULT_WINDOW)
    if name == "adaptive":
        return Mode(name, None, window)
    fixed = re.fullmatch(r"fixed:(\d+)", name)
    if not fixed:
        raise UsageError(f"The mode {name!r} is unknown; there are {_FORMS}.")
    if int(fixed[1]) not in WIDTHS:
        raise UsageError(f"There is no width {fixed[1]}; the widths are {', '.join(map(str, WIDTHS))}.")
    return Mode(name, int(fixed[1]), window or DEFAULT_WINDOW)


class Steering(Protocol):
    """What chooses widths: `pyweb.speculation.controller.Controller`, or one fixed width."""

    def begin(self) -> None:
        """A reply starts."""

    def width(self) -> int:
        """Width of the window submitted next."""

    def observe(self, records: Sequence[tuple[int, int, int]]) -> None:
        """Records of the oldest window in flight."""

    def completed(self, width: int, steps: int, milliseconds: float) -> None:
        """The interval between the completions of a window and of the one before it."""


class FixedWidth:
    """The same width for every window."""

    def __init__(self, width: int):
        self._width = width

    def begin(self) -> None:
        pass

    def width(self) -> int:
        return self._width

    def observe(self, records: Sequence[tuple[int, int, int]]) -> None:
        pass

    def completed(self, width: int, steps: int, milliseconds: float) -> None:
        pass
