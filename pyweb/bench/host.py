"""Where a window's time goes on the host: Python, the bridge, the browser."""

from time import perf_counter

from pyweb.bench.samples import summary
from pyweb.bench.settings import Run
from pyweb.engine.modes import Mode, parse_mode
from pyweb.errors import StoppedError, UsageError

__all__ = ["measure_host"]

_WARM = 2  # windows; the prefill's end is in the first
_FEWEST = 4


async def measure_host(run: Run, step_times: dict[int, float]) -> dict:
    """A row for each mode: milliseconds of a window's `interval` and its parts, `python`, `bridge` and `browser`.

    Browsers' clocks tick in up to 100 µs, so a sample is the mean of many windows, by the bridge's own counters.

    Args:
        step_times: GPU milliseconds of a step by width, as far as they are known; `gpu` of a row is a window's.
    """
    count = min(run.settings.position, run.engine.context // 4)
    prompt = run.engine.decoder.varied_ids(count)
    modes, runs = run.settings.host_modes, run.settings.runs
    parts = ("interval", "python", "bridge", "browser")
    samples = {mode: {part: [] for part in parts} for mode in modes}
    for number in range(runs + 1):
        for place, mode in enumerate(modes):
            await run.at(f"host time, {mode}", number * len(modes) + place, (runs + 1) * len(modes))
            taken = await _windows(run, prompt, mode)
            for part, milliseconds in zip(parts, taken, strict=True):
                if number:  # the first run compiles and warms up
                    samples[mode][part].append(milliseconds)
    return {"rows": [_row(mode, samples[mode], step_times) for mode in modes]}


async def _windows(run: Run, prompt: list[int], mode: str) -> tuple[float, float, float, float]:
    """Milliseconds of a window, and of them Python, bridge and browser."""
    engine, device = run.engine, run.engine.device
    windows = _windows_that_fit(run, len(prompt), parse_mode(mode))
    marks: list[tuple[float, float, float]] = []
    calls = ids = 0

    def on_tokens(new: list[int]) -> int | None:
        nonlocal calls, ids
        calls, ids = calls + 1, ids + len(new)
        if calls in (_WARM, _WARM + windows):
            counts = device.counters()
            marks.append((1000 * perf_counter(), counts["encode_ms"], counts["wait_ms"]))
        return ids if len(marks) == 2 else None

    room = engine.context - len(prompt) - 1
    await engine.generate(prompt, max_tokens=room, mode=mode, reuse=False, on_tokens=on_tokens, stopped=run.stopped)
    if len(marks) < 2:
        raise StoppedError("The benchmark was stopped.", "Start it again.")
    interval, bridge, browser = ((after - before) / windows for before, after in zip(*marks, strict=True))
    return interval, interval - bridge - browser, bridge, browser


def _windows_that_fit(run: Run, prompt: int, mode: Mode) -> int:
    """As many windows as make `tokens` one at a time, or as the context holds where every draft is accepted.

    Raises:
        UsageError: it holds none.
    """
    room = (run.engine.context - prompt - 1) // (mode.window * mode.width) - _WARM - mode.depth
    if room < 1:
        raise UsageError(
            f"A context of {run.engine.context} tokens is too short for the host time of {mode.name}.",
            "Load the model with a longer context.",
        )
    return min(room, max(_FEWEST, run.settings.tokens // mode.window))


def _row(mode: str, samples: dict[str, list[float]], step_times: dict[int, float]) -> dict:
    driven = parse_mode(mode)
    step = step_times.get(driven.width)
    gpu = None if step is None else step * driven.window
    return {"mode": mode, "window": driven.window, "gpu": gpu} | {part: summary(of) for part, of in samples.items()}
