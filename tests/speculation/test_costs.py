import json
import random

import pytest

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.speculation.costs import Costs, costs_key

MEASURED = dict(zip(WIDTHS, (2.0, 2.1, 2.2, 2.4, 3.5, 6.4), strict=True))


def test_answers_what_was_measured():
    costs = Costs(MEASURED)
    assert [costs[width] for width in WIDTHS] == list(MEASURED.values())
    assert costs.ratio(8) == pytest.approx(1.2)


def test_interpolates_between_and_beyond():
    costs = Costs({1: 1.0, 4: 4.0})
    assert costs[2] == pytest.approx(2.0)
    assert costs[16] == pytest.approx(16.0)
    assert Costs({8: 3.0})[1] == 3.0


@pytest.mark.parametrize("measured", [{}, {1: 0.0}, {1: -1.0}, {1: float("nan")}, {1: float("inf")}])
def test_refuses_what_is_no_cost(measured):
    with pytest.raises(UsageError):
        Costs(measured)


def test_follows_a_lasting_change():
    costs = Costs(MEASURED)
    for _ in range(40):
        costs.refine(8, steps=2, milliseconds=2 * 4.8)
    assert costs[8] == pytest.approx(4.8, rel=0.01)


def test_outliers_change_nothing():
    costs = Costs(MEASURED)
    numbers = random.Random(5)
    for window in range(300):
        late = 2000.0 if window % 7 == 3 else 0.0
        costs.refine(4, steps=1, milliseconds=2.2 * numbers.uniform(0.97, 1.03) + late)
    assert costs[4] == pytest.approx(2.2, rel=0.04)
    assert costs[1] == 2.0


@pytest.mark.parametrize("sample", [(4, 0, 5.0), (4, 1, 0.0), (4, 1, float("nan")), (5, 1, 5.0)])
def test_ignores_what_is_no_sample(sample):
    costs = Costs(MEASURED)
    for _ in range(5):
        costs.refine(*sample)
    assert costs.to_dict() == Costs(MEASURED).to_dict()


def test_a_stale_narrow_step_costs_no_more_than_a_wide_one():
    costs = Costs(MEASURED)
    for _ in range(100):
        costs.refine(8, 1, 1.2)
    assert costs[8] == pytest.approx(1.2, rel=0.01)
    assert costs[1] == costs[8]
    assert costs[32] == MEASURED[32]


def test_a_cost_too_high_comes_down_in_a_few_samples():
    costs = Costs({**MEASURED, 8: 9.0})
    for _ in range(8):
        for _ in range(60):
            costs.refine(4, 1, 2.2)
        costs.refine(8, 1, 2.4)
    assert costs[8] < 4.0


def test_comes_back_from_json_to_the_bit():
    costs = Costs(MEASURED)
    for window in range(10):
        costs.refine(WIDTHS[window % 3], 1, 2.0 + window / 7)
    again = Costs.from_dict(json.loads(json.dumps(costs.to_dict())))
    for each in (costs, again):
        each.refine(2, 1, 9.0)
    assert again.to_dict() == costs.to_dict()


def test_key_tells_device_model_and_version_apart():
    keys = {
        costs_key(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("a", "b", "d"))
    }
    assert len(keys) == 4
