"""The search for cuts, with steps that take what a formula says."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pyweb.bench import cuts
from pyweb.bench.report import tables
from pyweb.bench.settings import Run, Settings
from pyweb.errors import LimitError, StoppedError
from pyweb.kernels.tuning import SUBGROUPS, WIDTHS, Cut, Tuning


@dataclass
class Plan:
    tuning: Tuning = SUBGROUPS


class Programs:
    """Its programs are its tuning; the device has no workgroups of 64 threads for `qkv`."""

    def __init__(self, tuning=SUBGROUPS):
        self.tuning = tuning

    def with_tuning(self, tuning):
        return Programs(tuning)

    async def calibration(self, width, drafting):
        if self.tuning.cut("qkv", width, 896).threads == 64:
            raise LimitError("too few")
        return self.tuning


class Engine:
    tuning, plan, programs, decoder = SUBGROUPS, Plan(), Programs(), SimpleNamespace(hidden=896)

    async def begin_measurement(self):
        return 769


@pytest.fixture
def search(monkeypatch):
    """search(milliseconds, **settings): rows by (role, width), where a step takes milliseconds(tuning, width)."""

    def searched(milliseconds, stopped=lambda: False, same=lambda cut: cut, **settings):
        def kernels(plan, role, width):
            return frozenset({same(plan.tuning.cut(role, width, 896))})

        monkeypatch.setattr(cuts, "_kernels", kernels)

        async def interval(run, tuning, width, prompt):
            return milliseconds(tuning, width)

        monkeypatch.setattr(cuts, "interval", interval)
        run = Run(Engine(), Settings(runs=2, **settings), (), lambda *at: None, stopped)
        section = asyncio.run(cuts.measure_cuts(run))
        (table,) = tables({"cuts": section})
        assert len(table["rows"]) == len(section["rows"])
        return {(row["role"], row["width"]): row for row in section["rows"]}

    return searched


def wanting(role, **best):
    """A step is longer by a tenth for each factor of two that a role's cut is off."""

    def milliseconds(tuning, width):
        cut = tuning.cut(role, width, 896)
        ratios = (max(getattr(cut, name) / number, number / getattr(cut, name)) for name, number in best.items())
        return 1 + sum(0.1 * (ratio.bit_length() - 1) for ratio in map(int, ratios))

    return milliseconds


def test_it_walks_to_the_best_cut_of_each_product(search):
    rows = search(wanting("gate_up", threads=64, rows=2, unroll=2), role_widths=(8,))
    assert rows["gate_up", 8]["cut"] == [128, 8, 4, 1] and rows["gate_up", 8]["best"] == [64, 2, 4, 2]
    times = rows["gate_up", 8]["milliseconds"], rows["gate_up", 8]["best_milliseconds"]
    assert [time["median"] for time in times] == pytest.approx([1.4, 1.0])
    assert rows["gate_up", 8]["tried"] > 8
    for role in ("qkv", "residual", "matvec"):
        assert rows[role, 8]["best"] == rows[role, 8]["cut"]


def test_what_was_found_stays_while_the_next_is_searched(search):
    seen = []

    def milliseconds(tuning, width):
        seen.append((tuning.cut("qkv", 1, 896).threads, tuning.cut("matvec", 1, 896).threads))
        return 1 if tuning.cut("qkv", 1, 896).threads == 512 else 2

    rows = search(milliseconds, role_widths=(1,))
    assert rows["qkv", 1]["best"][0] == 512
    assert {qkv for qkv, matvec in seen if matvec != 128} == {512}


def test_less_than_a_hundredth_is_noise(search):
    rows = search(lambda tuning, width: 1.0 if tuning == SUBGROUPS else 0.995, role_widths=(1, 32))
    assert all(row["best"] == row["cut"] for row in rows.values())


def test_a_lucky_measurement_is_found_out(search):
    """The first cut beside the one in use seems twice as fast, but not again."""
    seen = {}

    def milliseconds(tuning, width):
        seen[tuning] = seen.get(tuning, 0) + 1
        return 0.5 if tuning != SUBGROUPS and len(seen) == 2 and seen[tuning] <= 3 else 1.0

    rows = search(milliseconds, role_widths=(8,))
    assert any(count > 3 for tuning, count in seen.items() if tuning != SUBGROUPS)
    assert all(row["best"] == row["cut"] for row in rows.values())


def test_a_cut_that_the_device_refuses_is_left_out(search):
    rows = search(wanting("qkv", threads=64), role_widths=(32,))
    assert rows["qkv", 32]["cut"][0] == 256 and rows["qkv", 32]["best"][0] == 128


def test_cuts_that_come_out_the_same_are_tried_once(search):
    every = search(lambda tuning, width: 1.0, role_widths=(8,))
    rows = search(lambda tuning, width: 1.0, role_widths=(8,), same=lambda cut: (cut.rows, cut.tokens, cut.unroll))
    assert all(rows[key]["tried"] < every[key]["tried"] for key in rows)


def test_it_can_be_stopped_within_a_search(search):
    steps = []

    def milliseconds(tuning, width):
        steps.append(width)
        return 1.0

    with pytest.raises(StoppedError):
        search(milliseconds, stopped=lambda: len(steps) == 3)
    assert len(steps) == 3


@pytest.mark.parametrize("width", WIDTHS)
def test_neighbours_are_cuts_that_kernels_can_have(width):
    for table in (SUBGROUPS.small, SUBGROUPS.middle, SUBGROUPS.large):
        for role in table:
            for cut in cuts.neighbours(table[role][width], role, width):
                assert cut != table[role][width]
                assert 64 <= cut.threads <= 1024 and 1 <= cut.tokens <= min(width, 8)
                assert (2 if role in ("qkv", "gate_up") else 1) <= cut.rows <= 8
    assert Cut(128, 4, 1, 4) in cuts.neighbours(Cut(256, 4, 1, 4), "gate_up", 1)
    assert Cut(512, 1, 1, 4) in cuts.neighbours(Cut(512, 2, 1, 4), "residual", 1)
    assert {cut.threads for cut in cuts.neighbours(Cut(256, 4, 1, 4), "residual", 1, 256)} == {128, 256}
