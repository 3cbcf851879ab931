"""Whether other cuts of the products than those of `pyweb.kernels.tuning` would make a step shorter on this device."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, fields, replace

from pyweb.bench.samples import summary
from pyweb.bench.settings import Run
from pyweb.bench.widths import interval
from pyweb.errors import LimitError, ShaderError
from pyweb.kernels.tuning import Cut, Tuning
from pyweb.plan.step import StepPlan

__all__ = ["measure_cuts", "neighbours"]

_GAIN = 0.99  # of the time in use: a cut that saves less isn't told from noise
_ROUNDS = 4
_LEAST, _MOST = Cut(64, 1, 1, 1), Cut(1024, 8, 8, 4)
_PAIRED = ("qkv", "gate_up")  # take two rows at a time


async def measure_cuts(run: Run) -> dict:
    """A row for each product and each of `role_widths`: the `cut` in use and the `best` one that was found, as
    [threads, rows, tokens, unroll], with `milliseconds` and `best_milliseconds` a step, and how many were `tried`.

    One cut changes at a time, by a factor of two in one of its numbers, at most four times and as long as that shortens
    the whole step: a role alone would find its weights in the cache. What was found for one product stays while the
    next is searched. Nothing of this changes a bit of the model's results, nor the cuts that the engine uses.
    """
    tuning, hidden = run.engine.tuning, run.engine.decoder.hidden
    wanted = [(width, role) for width in sorted(set(run.settings.role_widths)) for role in tuning.small]
    rows = []
    for place, (width, role) in enumerate(wanted):
        await run.at(f"cuts of {role}, width {width}", place, len(wanted))
        row, tuning = await _search(run, tuning, role, width, tuning.cut(role, width, hidden))
        rows.append(row)
    return {"rows": rows}


def neighbours(cut: Cut, role: str, width: int, threads: int = _MOST.threads) -> list[Cut]:
    """Cuts of a role that differ in one number by a factor of two, for steps of `width` nodes and workgroups of at most
    `threads`."""
    least = replace(_LEAST, rows=2) if role in _PAIRED else _LEAST
    bounds, found = (cut, least, replace(_MOST, tokens=min(_MOST.tokens, width), threads=threads)), []
    for field in fields(Cut):
        number, least, most = (getattr(bound, field.name) for bound in bounds)
        found += [replace(cut, **{field.name: other}) for other in (number // 2, 2 * number) if least <= other <= most]
    return found


def _kernels(plan: StepPlan, role: str, width: int) -> frozenset:
    """What a role's dispatches are: cuts that a matrix is too small for come out the same."""
    step = [*plan.forward(width, 1), *plan.head(width)]
    return frozenset((dispatch.kernel, dispatch.grid) for dispatch in step if dispatch.kernel.role == role)


async def _search(run: Run, tuning: Tuning, role: str, width: int, used: Cut) -> tuple[dict, Tuning]:
    def kernels(cut: Cut) -> frozenset:
        return _kernels(replace(run.engine.plan, tuning=tuning.with_cut(role, width, cut)), role, width)

    best, tried = used, {kernels(used): used}
    for _ in range(_ROUNDS):
        near = neighbours(best, role, width, tuning.most_threads)
        new = [cut for cut in near if tried.setdefault(kernels(cut), cut) is cut]
        times = await _times(run, tuning, role, width, [best, *new])
        fastest = min(times, key=lambda cut: times[cut]["median"])
        if times[fastest]["median"] >= _GAIN * times[best]["median"]:
            break
        best = fastest
    # The fastest of many was lucky as well: it counts by what it takes beside the one in use, once more.
    times = await _times(run, tuning, role, width, list(dict.fromkeys((used, best))))
    if times[best]["median"] >= _GAIN * times[used]["median"]:
        best = used
    row = {"role": role, "width": width, "cut": list(astuple(used)), "milliseconds": times[used]}
    row |= {"best": list(astuple(best)), "best_milliseconds": times[best], "tried": len(tried)}
    return row, tuning.with_cut(role, width, best)


async def _times(run: Run, tuning: Tuning, role: str, width: int, cuts: Sequence[Cut]) -> dict[Cut, dict]:
    """Milliseconds a step with each of the cuts that the device can run, one after the other in each run."""
    programs = {}
    for cut in cuts:
        run.check()
        recut = run.engine.programs.with_tuning(tuning.with_cut(role, width, cut))
        with suppress(LimitError, ShaderError):
            programs[cut] = await recut.calibration(width, drafting=False)
    samples: dict[Cut, list[float]] = {cut: [] for cut in programs}
    prompt = await run.engine.begin_measurement()
    for number in range(run.settings.runs + 1):
        for cut, program in programs.items():
            run.check()
            milliseconds = await interval(run, program, width, prompt)
            if number:  # the first run warms up
                samples[cut].append(milliseconds)
    return {cut: summary(taken) for cut, taken in samples.items()}
