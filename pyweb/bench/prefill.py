"""Prefill by the prompt's length, and the first token behind it."""

from pyweb.bench.samples import summary
from pyweb.bench.settings import Run

__all__ = ["measure_prefill"]


async def measure_prefill(run: Run) -> dict:
    """A row for each length: `milliseconds` of the prefill, `first_token` with the first step read back, and
    `tokens_per_second`; `left_out` are lengths that the context doesn't hold."""
    engine, runs = run.engine, run.settings.runs
    lengths = [length for length in run.settings.lengths if length < engine.context]
    prefill: dict[int, list[float]] = {length: [] for length in lengths}
    first: dict[int, list[float]] = {length: [] for length in lengths}
    for number in range(runs + 1):
        for place, length in enumerate(lengths):
            await run.at(f"prefill of {length} tokens", number * len(lengths) + place, (runs + 1) * len(lengths))
            prompt = engine.decoder.varied_ids(length)
            reply = await engine.generate(prompt, max_tokens=1, mode="greedy", reuse=False, stopped=run.stopped)
            if number:  # the first run compiles and warms up
                prefill[length].append(1000 * reply.prefill_time)
                first[length].append(1000 * (reply.prefill_time + reply.first_token_time))
    rows = []
    for length in lengths:
        milliseconds = summary(prefill[length])
        rate = 1000 * length / milliseconds["median"]
        row = {"tokens": length, "milliseconds": milliseconds, "first_token": summary(first[length])}
        rows.append(row | {"tokens_per_second": rate})
    return {"rows": rows, "left_out": [length for length in run.settings.lengths if length not in lengths]}
