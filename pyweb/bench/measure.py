"""A run of the benchmark: the parts that were asked for, one after the other, as one result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from pyweb.bench.cuts import measure_cuts
from pyweb.bench.floors import clock_of
from pyweb.bench.host import measure_host
from pyweb.bench.modes import measure_modes
from pyweb.bench.prefill import measure_prefill
from pyweb.bench.report import FORMAT, tables
from pyweb.bench.roles import measure_roles
from pyweb.bench.settings import Run, settings_for
from pyweb.bench.tasks import TASKS, Task, tasks_of
from pyweb.bench.widths import measure_widths
from pyweb.engine import Engine
from pyweb.errors import UsageError

__all__ = ["PARTS", "measure"]

PARTS = ("widths", "modes", "prefill", "roles", "host", "cuts")
"""Parts in the order in which they are measured; `host` takes the GPU's share from `roles`."""


async def measure(
    engine: Engine,
    parts: Sequence[str],
    prompt_of: Callable[[Task], list[int]],
    *,
    settings: Mapping[str, object] | None = None,
    measured: Mapping | None = None,
    prompts: Sequence[object] | None = None,
    stops: Sequence[int] = (),
    report: Callable[[str, int, int], None] = lambda what, done, total: None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict:
    """Measures parts and adds them to what was `measured` before; see `pyweb.bench.report` for the result.

    Args:
        parts: of `PARTS`.
        prompt_of: ids of a task's prompt.
        settings: see `Settings`; what is left out or None has its default.
        prompts: JSON rows of `tasks_of` in place of the built-in tasks.
        stops: token ids that end replies.
        report: called with what is measured, done, total before each measurement.
        stopped: asked there; True ends the run.

    Raises:
        UsageError: a part, setting or prompt that makes no sense.
        StoppedError: the run was stopped.
    """
    if unknown := [part for part in parts if part not in PARTS]:
        raise UsageError(f"There is no part {unknown[0]} of the benchmark.", f"The parts are {', '.join(PARTS)}.")
    run = Run(engine, settings_for(engine, settings or {}), stops, report, stopped)
    tasks = TASKS if prompts is None else tasks_of(prompts)
    result = {**(measured or {}), **_described(engine), "settings": asdict(run.settings)}
    measures = {
        "widths": lambda: measure_widths(run),
        "modes": lambda: measure_modes(run, tasks, prompt_of),
        "prefill": lambda: measure_prefill(run),
        "roles": lambda: measure_roles(run),
        "host": lambda: measure_host(run, _step_times(result.get("roles"))),
        "cuts": lambda: measure_cuts(run),
    }
    for part in PARTS:
        if part in parts:
            result[part] = await measures[part]()
    return result | {"tables": tables(result)}


def _step_times(roles: Mapping | None) -> dict[int, float]:
    """GPU milliseconds of a whole step by width, where timestamps measured them."""
    if not roles or roles["clock"] != "timestamps":
        return {}
    return {step["width"]: step["step"]["milliseconds"]["median"] for step in roles["widths"]}


def _described(engine: Engine) -> dict:
    """The parts of a result that say what was measured."""
    decoder, device = engine.decoder, engine.device
    sizes = ("architecture", "layers", "hidden", "heads", "kv_heads", "head_size", "feed_forward", "vocabulary")
    model = {name: getattr(decoder, name) for name in sizes}
    machine = {"info": dict(device.info), "tuning": engine.tuning.name, "clock": clock_of(device)[0]}
    return {"format": FORMAT, "machine": machine, "model": model | {"context": engine.context} | engine.gpu_bytes}
