"""What is measured of a device, how it is kept, and that it is measured once."""

import asyncio
import json
from pathlib import Path

import pytest

from pyweb.engine import Calibration, Engine, calibration
from pyweb.engine.calibration import SAMPLES, SOFTWARE_WIDTHS, calibrate_costs, calibrate_window, warm_up
from pyweb.kernels.tuning import SOFTWARE, WIDTHS
from pyweb.weights import parse_gguf
from tests.plan.fake import FakeDevice

FILE = Path(__file__).resolve().parents[1] / "fixtures" / "tiny_tied.gguf"
KEPT = {"costs": {"1": 2.0, "2": 2.5, "4": 3.25}, "window": 2}


class Source:
    size = FILE.stat().st_size


class Clock:
    """Stands still but for what `advance` adds, in seconds."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(calibration, "perf_counter", lambda: self.now)

    def advance(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class TimedDevice(FakeDevice):
    """Programs are widths and take `cost(width, run)` seconds one after the other; runs of a width count from 0."""

    def __init__(self, clock, cost):
        super().__init__()
        self.clock, self.cost, self.runs = clock, cost, []

    async def collect(self, ticket):
        width = self.submitted[len(self.runs)][0]
        self.clock.advance(self.cost(width, self.runs.count(width)))
        self.runs.append(width)
        return b""


class WidthAsProgram:
    async def calibration(self, width):
        return width


def measured(device, widths, **options):
    begun = []
    costs = asyncio.run(calibrate_costs(device, WidthAsProgram(), lambda: begun.append(1), widths, **options))
    assert len(begun) == len(widths)
    return costs


def test_round_trip():
    known = Calibration({1: 2.0, 2: 2.5, 4: 3.25}, 2)
    assert known.to_dict() == KEPT
    assert Calibration.from_dict(json.loads(json.dumps(known.to_dict()))) == known


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        "costs",
        7,
        {},
        {"costs": KEPT["costs"]},
        {"window": 2},
        KEPT | {"costs": None},
        KEPT | {"costs": [1.0, 2.0]},
        KEPT | {"costs": {}},
        KEPT | {"costs": {"2": 1.0}},
        KEPT | {"costs": {"1": 0.0}},
        KEPT | {"costs": {"1": 2.0, "2": -1.0}},
        KEPT | {"costs": {"1": "fast"}},
        KEPT | {"costs": {"1": None}},
        KEPT | {"costs": {"one": 1.0}},
        KEPT | {"costs": {"1": 1.0, "3": 2.0}},
        KEPT | {"costs": {"1": float("nan")}},
        KEPT | {"costs": {"1": 1.0, "2": float("inf")}},
        KEPT | {"window": 3},
        KEPT | {"window": "2"},
        KEPT | {"window": None},
        KEPT | {"window": 2.0},
    ],
)
def test_damage_is_found(damaged):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        Calibration.from_dict(damaged)


def test_costs_of_completions_that_are_reported_in_pairs(clock):
    device = TimedDevice(clock, lambda width, run: 0.002 * width * (run % 2))
    assert measured(device, WIDTHS) == pytest.approx({width: float(width) for width in WIDTHS})


def test_costs_leave_out_a_first_run_and_a_late_one(clock):
    """The first run of a width is 50 times slower, one of the others 10 times."""
    device = TimedDevice(clock, lambda width, run: 0.001 * width * {0: 50, 3: 10}.get(run, 1))
    assert measured(device, WIDTHS) == pytest.approx({width: float(width) for width in WIDTHS})
    assert device.runs == [width for width in WIDTHS for _ in range(SAMPLES + 1)]


def test_a_width_that_is_measured_twice_costs_the_less(clock):
    """The clock of the GPU has risen until the second time."""
    device = TimedDevice(clock, lambda width, run: 0.003 if len(device.runs) < 6 else 0.001)
    costs = asyncio.run(calibrate_costs(device, WidthAsProgram(), lambda: None, (1, 2, 1)))
    assert costs == pytest.approx({1: 1.0, 2: 1.0}) and list(costs) == [1, 2]


def test_a_step_costs_no_more_than_a_wider_one(clock):
    """Something else kept the GPU busy while width 4 was measured."""
    device = TimedDevice(clock, lambda width, run: 0.003 if width == 4 else 0.001 + 0.0001 * width)
    assert measured(device, (1, 2, 4, 8)) == pytest.approx({1: 1.1, 2: 1.2, 4: 1.8, 8: 1.8})


def test_a_width_whose_completions_came_together_says_nothing_of_the_others(clock):
    device = TimedDevice(clock, lambda width, run: 0.0 if width == 8 else 0.001 * width)
    assert measured(device, (1, 2, 8)) == pytest.approx({1: 1.0, 2: 2.0, 8: 0.01})


def test_a_cost_is_never_nothing(clock):
    """Where the clock is coarse, completions seem to come together."""
    assert min(measured(TimedDevice(clock, lambda width, run: 0.0), WIDTHS).values()) > 0


def test_a_single_sample(clock):
    device = TimedDevice(clock, lambda width, run: 0.1 * width)
    assert measured(device, (1, 2), samples=1) == pytest.approx({1: 100.0, 2: 200.0})
    assert device.runs == [1, 2]


class WindowedDevice(FakeDevice):
    """Runs submissions one after the other: a step takes 2 ms, the host hears of each `late` seconds later."""

    def __init__(self, clock, late):
        super().__init__()
        self.clock, self.late, self.ends, self.asked = clock, late, [], []

    def submit(self, program, repeats=1, readbacks=()):
        start = max(self.clock.now, self.ends[-1] if self.ends else 0.0)
        self.ends.append(start + 0.002 * repeats)
        self.asked.append((program, repeats, tuple(readbacks)))
        return len(self.ends) - 1

    async def collect(self, ticket):
        self.clock.now = max(self.clock.now, self.ends[ticket] + self.late)
        return b""


@pytest.mark.parametrize("late, window", [(0.0, 1), (0.0039, 1), (0.0075, 2), (0.0155, 4), (0.06, 4)])
def test_the_smallest_window_that_loses_little(clock, late, window):
    """With three windows in flight, news that come later than two windows take leave the device idle."""
    device, begun = WindowedDevice(clock, late), []
    chosen = asyncio.run(calibrate_window(device, WidthAsProgram(), lambda: begun.append(1), (7, 512, 64)))
    assert chosen == window and len(begun) == 3
    assert {(program, readback) for program, _, readback in device.asked} == {(8, (7, 512, 64))}
    steps = [sum(repeats for _, repeats, _ in device.asked if repeats == size) for size in (1, 2, 4)]
    assert len(set(steps)) == 1


@pytest.fixture
def loaded():
    """An engine of a software adapter that computes nothing."""
    gguf = parse_gguf(FILE.read_bytes())
    return asyncio.run(Engine.load(FakeDevice(), Source(), gguf, context=64, tuning=SOFTWARE))


def test_a_software_adapter_measures_a_few_widths_once(loaded):
    known = asyncio.run(loaded.calibrate())
    assert tuple(known.costs) == SOFTWARE_WIDTHS and min(known.costs.values()) > 0
    assert known.window == 1
    assert loaded.calibration is known
    submitted = len(loaded.device.submitted)
    assert asyncio.run(loaded.calibrate()) is known
    assert len(loaded.device.submitted) == submitted


def test_what_is_known_is_not_measured(loaded):
    loaded.calibration = known = Calibration.from_dict(KEPT)
    assert asyncio.run(loaded.calibrate()) is known
    assert not loaded.device.submitted


def test_the_controller_works_with_new_measurements(loaded):
    async def steering(costs):
        loaded.calibration = Calibration(costs, 1)
        await loaded.prepare("adaptive")
        return loaded._controller.costs

    assert asyncio.run(steering({1: 1.0, 2: 1.5}))[2] == 1.5
    assert asyncio.run(steering({1: 1.0, 2: 7.5}))[2] == 7.5


def test_warming_up_ends(clock):
    """After a moment, and on a clock that stands still as well."""
    quick, still = (TimedDevice(clock, lambda width, run, cost=cost: cost) for cost in (0.05, 0.0))
    asyncio.run(warm_up(quick, WidthAsProgram(), lambda: None))
    asyncio.run(warm_up(still, WidthAsProgram(), lambda: None))
    assert len(quick.runs) == 5
    assert 0 < len(still.runs) <= 100
