"""The benchmark's measurements on a tiny model, and the clock that they use."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from pyweb.bench import measure
from pyweb.bench.cuts import _kernels, neighbours
from pyweb.engine.exactness import Exactness
from pyweb.errors import PromptTooLongError, StoppedError, UsageError
from pyweb.kernels.tuning import GPU, SOFTWARE
from pyweb.plan.dispatch import Dispatch, Kernel
from tests.gpu.conftest import FEW_LANES

SETTINGS = {
    "runs": 2,
    "tokens": 8,
    "widths": [8],
    "modes": ["greedy", "fixed:8"],
    "lengths": [12, 5000],
    "role_widths": [1, 8],
    "host_modes": ["loop"],
    "steps": 3,
    "batch": 0.5,
}


@pytest.fixture(scope="session")
def tiny(engine):
    return engine("tied", SOFTWARE)


def run(engine, parts, **options):
    settings = SETTINGS | options.pop("settings", {})
    prompt_of = lambda task: [3, 4, 5, 6] * 4 + [7 + len(task.id)]  # noqa: E731
    return asyncio.run(measure(engine, parts, prompt_of, settings=settings, **options))


def test_timestamps_grow_with_the_work(device, stage):
    made = stage(SOFTWARE)
    word = made.new(np.zeros(1, np.uint32))
    kernel = Dispatch(Kernel.of("bench_write"), (word,), (1, 1, 1))
    program = asyncio.run(made.assembler.program([kernel] * 10))
    few, many = (asyncio.run(device.time(program, repeats)) for repeats in (1, 400))
    assert 0 <= few < many
    assert made.read(word, np.uint32).tolist() == [10 * 401]


def test_counters_tell_how_long_the_bridge_and_the_wait_took(device, tiny):
    before = device.counters()
    asyncio.run(tiny.generate([5, 6, 7], max_tokens=8, mode="greedy", reuse=False))
    after = device.counters()
    assert after["encode_ms"] > before["encode_ms"] and after["wait_ms"] > before["wait_ms"]


@pytest.mark.parametrize("tuning", [SOFTWARE, GPU], ids=lambda tuning: tuning.name)
def test_roles_add_up_and_leave_the_model_as_it_was(engine, tuning):
    loaded = engine("tied", tuning)
    plain = asyncio.run(loaded.generate([5, 6, 7, 8], max_tokens=6, reuse=False)).ids
    section = run(loaded, ["roles"])["roles"]
    assert section["clock"] == "timestamps" and section["empty_gpu"] > 0 and section["bandwidth"] > 0
    for step, width in zip(section["widths"], (1, 8), strict=True):
        plan = loaded.plan
        wanted = [*plan.forward(width, 1), *plan.head(width), *plan.choose(width)]
        roles = {row["role"]: row for row in step["rows"]}
        drafting = sum(row["dispatches"] for role, row in roles.items() if role.startswith("draft"))
        assert bool(drafting) == (width > 1)
        assert sum(row["dispatches"] for row in step["rows"]) == step["step"]["dispatches"] == len(wanted) + drafting
        assert step["step"]["weight_bytes"] == sum(row["weight_bytes"] for row in step["rows"]) > 0
        assert all(len(row["milliseconds"]["samples"]) == 2 for row in step["rows"])
        assert step["step"]["milliseconds"]["median"] > 0
    assert asyncio.run(loaded.generate([5, 6, 7, 8], max_tokens=6, reuse=False)).ids == plain


def test_roles_by_the_wall_where_there_are_no_timestamps(tiny, monkeypatch):
    monkeypatch.setattr(tiny.device, "features", frozenset())
    result = run(tiny, ["roles"], settings={"role_widths": [1], "runs": 1})
    assert result["roles"]["clock"] == result["machine"]["clock"] == "wall"
    assert "wall time" in next(table for table in result["tables"] if "kernel role" in table["title"])["note"]


def test_a_run_of_all_parts(tiny):
    rows = [{"id": "a", "instruction": "?"}, {"id": "bc", "instruction": "?"}]
    seen = []
    result = run(tiny, ["modes", "widths", "prefill"], prompts=rows, report=lambda *at: seen.append(at))
    assert [row["width"] for row in result["widths"]["rows"]] == [1, 8]
    assert result["widths"]["rows"][0]["ratio"] == 1
    assert [row["mode"] for row in result["modes"]["rows"]] == ["greedy", "fixed:8"]
    assert [(task["id"], task["reply_tokens"], task["different"]) for task in result["modes"]["tasks"]] == [
        ("a", 8, []),
        ("bc", 8, []),
    ]
    assert [row["tokens"] for row in result["prefill"]["rows"]] == [12]
    assert result["prefill"]["left_out"] == [5000]
    first = result["prefill"]["rows"][0]
    assert first["first_token"]["median"] > first["milliseconds"]["median"] > 0
    for section in ("widths", "modes", "prefill"):
        assert all(len(row["milliseconds"]["samples"]) == 2 for row in result[section]["rows"])
    assert {what for what, _done, _total in seen} >= {"width 8", "greedy, task a", "prefill of 12 tokens"}
    assert all(done <= total for _what, done, total in seen)

    later = run(tiny, ["host"], measured=result)
    assert later["modes"] == result["modes"]
    (row,) = later["host"]["rows"]
    parts = [row[part]["samples"] for part in ("python", "bridge", "browser")]
    assert [sum(sample) for sample in zip(*parts, strict=True)] == pytest.approx(row["interval"]["samples"])
    assert min(row["bridge"]["samples"] + row["browser"]["samples"]) > 0


def test_cuts_are_searched_and_change_nothing(tiny):
    before = tiny.tuning
    plain = asyncio.run(tiny.generate([5, 6, 7, 8], max_tokens=6, mode="fixed:8", reuse=False)).ids
    rows = run(tiny, ["cuts"], settings={"role_widths": [8], "runs": 1})["cuts"]["rows"]
    assert [row["role"] for row in rows] == ["qkv", "gate_up", "matvec"]
    for row in rows:
        assert row["tried"] > 3 and row["milliseconds"]["median"] > 0
        assert (row["best"] == row["cut"]) == (row["best_milliseconds"] == row["milliseconds"])
    assert tiny.tuning == before
    assert asyncio.run(tiny.generate([5, 6, 7, 8], max_tokens=6, mode="fixed:8", reuse=False)).ids == plain


@pytest.mark.parametrize("role", ["residual", "gate_up"])
def test_every_cut_that_is_tried_gives_the_same_bits(device, engine, role):
    loaded = engine("tied", FEW_LANES)
    ids, most = loaded.decoder.varied_ids(17), loaded.tuning.most_threads
    plain = asyncio.run(loaded.trace(ids, 8))
    used = loaded.tuning.cut(role, 8, loaded.decoder.hidden)
    seen = set()
    for cut in neighbours(used, role, 8, most) + neighbours(replace(used, rows=2, threads=64), role, 8, most):
        tuning = loaded.tuning.with_cut(role, 8, cut)
        plan, programs = replace(loaded.plan, tuning=tuning), loaded.programs.with_tuning(tuning)
        exactness = Exactness(device, plan, programs, loaded._begin_trace)
        assert asyncio.run(exactness.trace(ids, 8)) == plain, cut
        seen.add(_kernels(plan, role, 8))
    assert len(seen) > 4


def test_it_can_be_stopped_between_measurements(tiny):
    seen = []
    with pytest.raises(StoppedError, match="benchmark was stopped"):
        run(tiny, ["widths"], report=lambda *at: seen.append(at), stopped=lambda: len(seen) == 2)
    assert len(seen) == 2


def test_what_makes_no_sense_is_said_before_anything_runs(tiny):
    with pytest.raises(UsageError, match="no part speed"):
        run(tiny, ["speed"])
    with pytest.raises(PromptTooLongError, match="No task fits"):
        run(tiny, ["modes"], settings={"tokens": 500})
    with pytest.raises(UsageError, match="too short for the host time"):
        run(tiny, ["host"], settings={"host_modes": ["fixed:32"]})
