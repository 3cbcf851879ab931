"""Decoding speed by mode, on the same prompts, weights and kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyweb.bench.samples import summary
from pyweb.bench.settings import Run
from pyweb.bench.tasks import Task
from pyweb.engine import Generation
from pyweb.errors import PromptTooLongError

__all__ = ["Pace", "measure_modes", "pace_of"]


@dataclass(frozen=True)
class Pace:
    """What whole windows took: `seconds` for `tokens` in `steps`."""

    seconds: float
    tokens: int
    steps: int

    def __add__(self, other: "Pace") -> "Pace":
        return Pace(self.seconds + other.seconds, self.tokens + other.tokens, self.steps + other.steps)

    @property
    def milliseconds(self) -> float:
        """A token."""
        return 1000 * self.seconds / self.tokens


def pace_of(reply: Generation) -> Pace:
    """The pace of a reply's windows behind the first, which has the prefill before it, but for one that the reply's end
    cut short; of the whole reply where no other is left."""
    whole = max(steps for _width, steps, _seconds in reply.windows)
    seconds, tokens, counted, at = 0.0, 0, 0, 0
    for number, (_width, steps, interval) in enumerate(reply.windows):
        if number and steps == whole:
            seconds += interval
            tokens += sum(record[0] for record in reply.records[at : at + steps])
            counted += steps
        at += steps
    if not counted:
        return Pace(reply.first_token_time + reply.decode_time, max(1, len(reply.ids)), max(1, reply.steps))
    return Pace(seconds, tokens, counted)


async def measure_modes(run: Run, tasks: Sequence[Task], prompt_of: Callable[[Task], list[int]]) -> dict:
    """A row for each mode: `milliseconds` a token (all tasks of a run together), `milliseconds_per_step`,
    `tokens_per_step`, `speedup` over the first mode. `tasks` tells tokens a step of each, and which modes gave
    `different` ids than the first. `left_out` are tasks that the context doesn't hold.

    Modes take turns within each task, with the prompt computed anew every time.

    Raises:
        PromptTooLongError: the context holds no task.
    """
    prompts, left_out = _prompts(run, tasks, prompt_of)
    modes, runs = run.settings.modes, run.settings.runs
    for mode in modes:
        await run.at(f"preparing {mode}", 0, 0)
        await run.engine.prepare(mode)
    samples: dict[str, list[Pace]] = {mode: [] for mode in modes}
    seen: dict[str, dict[str, Generation]] = {name: {} for name in prompts}
    done, total = 0, (runs + 1) * len(prompts) * len(modes)
    for number in range(runs + 1):
        sums = {mode: Pace(0.0, 0, 0) for mode in modes}
        for name, prompt in prompts.items():
            for mode in modes:
                await run.at(f"{mode}, task {name}", done, total)
                reply = await _reply(run, prompt, mode)
                sums[mode] += pace_of(reply)
                seen[name][mode] = reply
                done += 1
        if number:  # the first run compiles and warms up
            for mode in modes:
                samples[mode].append(sums[mode])
    rows = [_row(mode, samples[mode]) for mode in modes]
    for row in rows:
        row["speedup"] = rows[0]["milliseconds"]["median"] / row["milliseconds"]["median"]
    described = [_described(name, prompts[name], seen[name]) for name in prompts]
    return {"rows": rows, "tasks": described, "left_out": left_out}


def _prompts(run: Run, tasks: Sequence[Task], prompt_of: Callable[[Task], list[int]]):
    prompts, left_out = {}, []
    for task in tasks:
        try:
            prompt = prompt_of(task)
        except PromptTooLongError:
            prompt = []
        if prompt and len(prompt) + run.settings.tokens < run.engine.context:
            prompts[task.id] = prompt
        else:
            left_out.append(task.id)
    if not prompts:
        raise PromptTooLongError(
            f"No task fits in the context of {run.engine.context} tokens with a reply of {run.settings.tokens}.",
            "Lower the tokens of a reply or load the model with a longer context.",
        )
    return prompts, left_out


async def _reply(run: Run, prompt: list[int], mode: str) -> Generation:
    return await run.engine.generate(
        prompt, max_tokens=run.settings.tokens, stops=run.stops, mode=mode, reuse=False, stopped=run.stopped
    )


def _row(mode: str, paces: Sequence[Pace]) -> dict:
    steps, tokens = sum(pace.steps for pace in paces), sum(pace.tokens for pace in paces)
    milliseconds = summary([pace.milliseconds for pace in paces])
    per_step = tokens / steps
    each = milliseconds["median"] * per_step
    return {"mode": mode, "milliseconds": milliseconds, "milliseconds_per_step": each, "tokens_per_step": per_step}


def _described(name: str, prompt: list[int], replies: dict[str, Generation]) -> dict:
    first = next(iter(replies.values()))
    return {
        "id": name,
        "prompt_tokens": len(prompt),
        "reply_tokens": len(first.ids),
        "tokens_per_step": {mode: len(reply.ids) / max(1, reply.steps) for mode, reply in replies.items()},
        "different": [mode for mode, reply in replies.items() if reply.ids != first.ids],
    }
