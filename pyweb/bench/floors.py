"""What this device does at best: the cost of a dispatch that does nothing, and the rate of a copy."""

from collections.abc import Awaitable, Callable
from time import perf_counter

from pyweb.device import Device
from pyweb.engine import Engine
from pyweb.errors import GPUOutOfMemoryError
from pyweb.plan.allocation import largest_binding
from pyweb.plan.dispatch import Binding, Dispatch, Kernel

__all__ = ["Clock", "clock_of", "measure_copy", "measure_dispatch"]

_COPIED = 256 << 20  # bytes, more than a GPU's cache holds
_SOFTWARE_COPIED = 16 << 20
_LEAST_COPIED = 1 << 20
_THREADS = 64
_GROUPS = 16384  # as many of them as keep every GPU busy
_DISPATCHES = 256  # in a program
_MOST_REPEATS = 4096

Clock = Callable[[int, int], Awaitable[float]]
"""Milliseconds of a program that runs so many times in one pass."""


def clock_of(device: Device) -> tuple[str, Clock]:
    """("timestamps", GPU time), or ("wall", time until the host hears of it) where a device has no timestamps."""

    async def stamped(program: int, repeats: int) -> float:
        return await device.time(program, repeats) / 1e6

    async def by_the_wall(program: int, repeats: int) -> float:
        start = perf_counter()
        await device.collect(device.submit(program, repeats))
        return 1000 * (perf_counter() - start)

    return ("timestamps", stamped) if "timestamp-query" in device.features else ("wall", by_the_wall)


async def repeats_for(clock: Clock, program: int, batch: float) -> int:
    """How often a program must run for a pass of some `batch` milliseconds: clocks tick in 100 µs."""
    repeats = 1
    while True:
        taken = await clock(program, repeats)
        if taken >= batch or repeats == _MOST_REPEATS:
            return repeats
        wanted = repeats * min(16.0, 1.2 * batch / max(taken, 0.1))
        repeats = min(_MOST_REPEATS, max(repeats + 1, int(wanted)))


async def measure_dispatch(engine: Engine, clock: Clock, batch: float) -> tuple[float, float]:
    """Milliseconds of a dispatch that changes one word: of GPU time by the clock, and of wall time."""
    device = engine.device
    word = Binding(await device.buffer(4, "bench word"), 4)
    try:
        program = await engine.programs.of([Dispatch(Kernel.of("bench_write"), (word,), (1, 1, 1))] * _DISPATCHES)
        repeats = await repeats_for(clock, program, batch)
        gpu = await clock(program, repeats) / repeats / _DISPATCHES
        times = []
        for factor in (1, 2, 1, 2):
            start = perf_counter()
            await device.collect(device.submit(program, factor * repeats))
            times.append(1000 * (perf_counter() - start))
        wall = max(min(times[1::2]) - min(times[::2]), 0.0) / repeats / _DISPATCHES
        return gpu, wall
    finally:
        device.destroy(word.buffer)


async def measure_copy(engine: Engine, clock: Clock, batch: float) -> float:
    """Bytes a second that a copy reads and writes together."""
    device = engine.device
    size = _SOFTWARE_COPIED if engine.tuning.barrier_free else min(_COPIED, largest_binding(device))
    source, target = await _two(device, size)
    try:
        count = source.size // 16
        kernel = Kernel.of("bench_copy", COUNT=count, STRIDE=min(_GROUPS * _THREADS, count // _THREADS * _THREADS))
        groups = min(_GROUPS, count // _THREADS)
        program = await engine.programs.of([Dispatch(kernel, (source, target), (groups, 1, 1))])
        repeats = await repeats_for(clock, program, batch)
        best = min([await clock(program, repeats) for _ in range(3)]) / repeats
        return 2 * source.size / (best / 1000)
    finally:
        for binding in (source, target):
            device.destroy(binding.buffer)


async def _two(device: Device, size: int) -> tuple[Binding, Binding]:
    """Two buffers of `size` bytes, or of less where the weights leave no room for that."""
    while True:
        made: list[Binding] = []
        try:
            for name in ("bench source", "bench target"):
                made.append(Binding(await device.buffer(size, name), size))
            return made[0], made[1]
        except GPUOutOfMemoryError:
            for binding in made:
                device.destroy(binding.buffer)
            if size <= _LEAST_COPIED:
                raise
            size //= 2
