"""T(N): what a step costs by its width."""

from itertools import pairwise
from time import perf_counter

from pyweb.bench.samples import summary
from pyweb.bench.settings import Run

__all__ = ["interval", "measure_widths", "windows_of"]

_WINDOW = 4


def windows_of(prompt: int, width: int, steps: int) -> tuple[int, int]:
    """(steps of a window, windows) for `steps`, or for as many as a prompt has tokens for steps of `width` nodes."""
    steps = min(steps, (prompt - 1) // width)
    window = max(1, min(_WINDOW, steps // 3))
    return window, max(2, steps // window)


async def interval(run: Run, program: int, width: int, prompt: int) -> float:
    """Milliseconds of a step: the mean interval between the completions of windows that are submitted together, so that
    the GPU never waits for the host. They lie around the middle of the `prompt` tokens, whatever the width."""
    engine, device = run.engine, run.engine.device
    window, windows = windows_of(prompt, width, run.settings.steps)
    await engine.begin_measurement((prompt - window * windows * width) // 2)
    tickets = [device.submit(program, window) for _ in range(windows)]
    completed = []
    for ticket in tickets:
        await device.collect(ticket)
        completed.append(perf_counter())
    intervals = [after - before for before, after in pairwise(completed)]
    return 1000 * sum(intervals) / len(intervals) / window


async def measure_widths(run: Run) -> dict:
    """`window` in steps, and a row for each width with its `milliseconds` a step and the `ratio` to that of width 1.

    All widths run once in each run.
    """
    widths = sorted({1, *run.settings.widths})
    samples: dict[int, list[float]] = {width: [] for width in widths}
    prompt = await run.engine.begin_measurement()
    for number in range(run.settings.runs + 1):
        for place, width in enumerate(widths):
            await run.at(f"width {width}", number * len(widths) + place, (run.settings.runs + 1) * len(widths))
            program = await run.engine.programs.calibration(width, drafting=False)
            milliseconds = await interval(run, program, width, prompt)
            if number:  # the first run warms up
                samples[width].append(milliseconds)
    single = summary(samples[1])["median"]
    rows = []
    for width in widths:
        milliseconds = summary(samples[width])
        rows.append({"width": width, "milliseconds": milliseconds, "ratio": milliseconds["median"] / single})
    return {"window": _WINDOW, "rows": rows}
