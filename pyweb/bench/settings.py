"""What is measured, how often and how long; and the state of a run."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from pyweb.engine import Engine
from pyweb.engine.modes import parse_mode
from pyweb.errors import StoppedError, UsageError
from pyweb.kernels.tuning import WIDTHS

__all__ = ["Run", "Settings", "settings_for"]


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    `runs` of everything, a first one that doesn't count aside; `tokens` of a reply; `widths` for T(N); `modes`, the
    first of which is what the others are compared with; `lengths` of prompts in tokens; `role_widths` for kernel roles
    and cuts; `host_modes` whose host time is split; `position` in the context of the step whose roles are measured, and
    where host time begins; `steps` of a sample of T(N); `batch` milliseconds that a pass for a kernel role takes at
    least.
    """

    runs: int = 5
    tokens: int = 128
    widths: tuple[int, ...] = WIDTHS
    modes: tuple[str, ...] = ("greedy", "loop", "fixed:8", "adaptive")
    lengths: tuple[int, ...] = (64, 256, 838, 2048)
    role_widths: tuple[int, ...] = (1, 8, 32)
    host_modes: tuple[str, ...] = ("loop", "fixed:8")
    position: int = 512
    steps: int = 64
    batch: float = 20.0


# A software adapter takes a hundred times as long, and its ratios are of no use for GPUs.
SOFTWARE = Settings(runs=2, tokens=16, widths=(1, 2, 4, 8), lengths=(64, 256), role_widths=(1, 8), position=64, steps=4)


def settings_for(engine: Engine, given: Mapping[str, object]) -> Settings:
    """The defaults for a device with what is given in their place; None counts as not given.

    Raises:
        UsageError: a name, number or mode that makes no sense.
    """
    given = {name: value for name, value in given.items() if value is not None}
    known = [field.name for field in fields(Settings)]
    unknown = given.keys() - set(known)
    if unknown:
        raise UsageError(f"A benchmark has no setting {min(unknown)}.", f"The settings are {', '.join(known)}.")
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list | tuple)}
    settings = replace(SOFTWARE if engine.tuning.barrier_free else Settings(), **(given | lists))
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    default = Settings()
    for name, value in asdict(settings).items():
        if isinstance(getattr(default, name), tuple) and (not isinstance(value, tuple) or not value):
            raise UsageError(f"The setting {name} is a list with something in it, not {value!r:.40}.")
    if isinstance(settings.batch, bool) or not isinstance(settings.batch, int | float) or not settings.batch > 0:
        raise UsageError(f"The setting batch is a number of milliseconds, not {settings.batch!r:.40}.")
    numbers = [settings.runs, settings.tokens, settings.position, settings.steps, *settings.lengths]
    if wrong := [number for number in numbers if type(number) is not int or number < 1]:
        raise UsageError(f"Runs, tokens, position, steps and lengths are positive whole numbers, not {wrong[0]!r:.40}.")
    if wrong := [width for width in (*settings.widths, *settings.role_widths) if width not in WIDTHS]:
        raise UsageError(f"There is no width {wrong[0]}; the widths are {', '.join(map(str, WIDTHS))}.")
    for mode in (*settings.modes, *settings.host_modes):
        parse_mode(str(mode))
    if wrong := [mode for mode in settings.host_modes if parse_mode(mode).width is None]:
        raise UsageError(f"Host time is split for a fixed width, not for {wrong[0]}.")


@dataclass(frozen=True)
class Run:
    """One run of a benchmark: what it measures with, and how it tells how far it is.

    Attributes:
        stops: token ids that end a reply; none where every reply has its full length.
        report: called with what is being measured, done, total.
        stopped: asked between measurements.
    """

    engine: Engine
    settings: Settings
    stops: Sequence[int]
    report: Callable[[str, int, int], None]
    stopped: Callable[[], bool]

    async def at(self, what: str, done: int, total: int) -> None:
        """Says what is measured next.

        Raises:
            StoppedError: the run was stopped.
        """
        await asyncio.sleep(0)  # lets the message through that stops it
        self.check()
        self.report(what, done, total)

    def check(self) -> None:
        """Goes on unless the run was stopped.

        Raises:
            StoppedError: it was.
        """
        if self.stopped():
            raise StoppedError("The benchmark was stopped.", "Start it again.")
