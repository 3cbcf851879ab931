"""GPU time of a step by kernel role, and the share of it that the device's floors explain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

from pyweb.bench.floors import Clock, clock_of, measure_copy, measure_dispatch, repeats_for
from pyweb.bench.samples import summary
from pyweb.bench.settings import Run
from pyweb.engine import Engine
from pyweb.plan.dispatch import Binding, Dispatch, Kernel

__all__ = ["group", "measure_roles", "weight_buffers", "weight_bytes"]

_GATHERS = frozenset(("embed",))  # read a row a node of what they bind
_WHOLE = "whole step"


async def measure_roles(run: Run) -> dict:
    """`clock` ("timestamps" or "wall"), the floors `empty_gpu` and `empty_wall` in milliseconds a dispatch and
    `bandwidth` in bytes a second, and for each of `widths` the whole `step` and `rows` of its roles: dispatches,
    `milliseconds`, `weight_bytes`, `floors` in milliseconds and the `shares` of the median that they explain.

    A role's dispatches run again and again in one pass of at least `batch` milliseconds, each time behind one that
    restores the step's state, whose own time is taken off.
    """
    engine = run.engine
    name, clock = clock_of(engine.device)
    await run.at("floors of the device", 0, 0)
    await engine.begin_measurement()
    empty_gpu, empty_wall = await measure_dispatch(engine, clock, run.settings.batch)
    bandwidth = await measure_copy(engine, clock, run.settings.batch)
    widths = [await _step(run, clock, width, empty_gpu, bandwidth) for width in run.settings.role_widths]
    return {
        "clock": name,
        "empty_gpu": empty_gpu,
        "empty_wall": empty_wall,
        "bandwidth": bandwidth,
        "widths": widths,
    }


def group(dispatches: Iterable[Dispatch]) -> dict[str, list[Dispatch]]:
    """Dispatches by kernel role, in order."""
    found: dict[str, list[Dispatch]] = {}
    for dispatch in dispatches:
        found.setdefault(dispatch.kernel.role, []).append(dispatch)
    return found


def weight_buffers(weights: object) -> frozenset[int]:
    """The buffers of all bindings that a weight plan holds, however it holds them."""
    return frozenset(binding.buffer for binding in _bindings(weights))


def _bindings(thing: object) -> Iterator[Binding]:
    if isinstance(thing, Binding):
        yield thing
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _bindings(value)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from _bindings(value)
    elif is_dataclass(thing):
        for field in fields(thing):
            yield from _bindings(getattr(thing, field.name))
    elif hasattr(thing, "__dict__"):
        yield from _bindings(vars(thing))


def weight_bytes(dispatches: Iterable[Dispatch], buffers: frozenset[int], width: int, vocabulary: int) -> int:
    """Bytes of weights that dispatches read at least: each binding once, of tables that are looked up a row a node."""
    total = 0
    for dispatch in dispatches:
        size = sum(binding.size for binding in dispatch.bindings if binding.buffer in buffers)
        total += size * width // vocabulary if dispatch.kernel.role in _GATHERS else size
    return total


def _dispatches(engine: Engine, width: int, length: int) -> list[Dispatch]:
    """A greedy step's; one of more than a node is followed by drafting."""
    plan = engine.plan
    drafting = engine.programs.drafting.dispatches(0) if width > 1 else []
    return [*plan.forward(width, plan.chunks(length)), *plan.head(width), *plan.choose(width), *drafting]


async def _step(run: Run, clock: Clock, width: int, empty: float, bandwidth: float) -> dict:
    engine, runs = run.engine, run.settings.runs
    position = min(run.settings.position, await engine.begin_measurement() - 1 - width)
    await engine.begin_measurement(position)
    engine.device.submit(await engine.programs.of([engine.plan.prefill_step(width)]))
    dispatches = _dispatches(engine, width, position + width)
    parts = {_WHOLE: dispatches, **group(dispatches)}
    saved, restore = await _restoring(engine)
    try:
        alone = await engine.programs.of([restore])
        programs = {role: await engine.programs.of([restore, *part]) for role, part in parts.items()}
        programs[""] = alone
        repeats = {role: await repeats_for(clock, program, run.settings.batch) for role, program in programs.items()}
        samples: dict[str, list[float]] = {role: [] for role in parts}
        for number in range(runs):
            restoring = await clock(alone, repeats[""]) / repeats[""]
            for place, role in enumerate(parts):
                await run.at(f"width {width}, {role}", number * len(parts) + place, runs * len(parts))
                taken = await clock(programs[role], repeats[role]) / repeats[role]
                samples[role].append(max(taken - restoring, 0.0))
    finally:
        engine.device.destroy(saved)
    buffers = weight_buffers(engine.plan.weights)
    rows = []
    for role, part in parts.items():
        read = weight_bytes(part, buffers, width, engine.decoder.vocabulary)
        floors = {"dispatch": len(part) * empty, "memory": 1000 * read / bandwidth}
        rows.append(_row(role, len(part), read, samples[role], floors))
    return {"width": width, "position": position, "step": rows[0], "rows": _slowest_first(rows[1:])}


def _row(role: str, count: int, read: int, samples: Sequence[float], floors: dict[str, float]) -> dict:
    milliseconds = summary(samples)
    middle = milliseconds["median"]  # 0 where a clock is too coarse
    shares = {name: least / middle if middle else None for name, least in floors.items()}
    row = {"role": role, "dispatches": count, "milliseconds": milliseconds, "weight_bytes": read}
    return row | {"floors": floors, "shares": shares}


def _slowest_first(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: -row["milliseconds"]["median"])


async def _restoring(engine: Engine) -> tuple[int, Dispatch]:
    """A copy of the step's state as it is now (a buffer), and the dispatch that puts it back."""
    device, control = engine.device, engine.plan.buffers.control
    data = await device.collect(device.submit(0, 1, (control.buffer, control.offset, control.size)))
    saved = Binding(await device.buffer(control.size, "bench state"), control.size)
    device.write(saved.buffer, 0, data)
    words = control.size // 4
    return saved.buffer, Dispatch(Kernel.of("bench_restore", WORDS=words), (saved, control), (-(-words // 64), 1, 1))
