"""Names of modes, and what they stand for."""

import pytest

from pyweb.engine.modes import DEFAULT_WINDOW, MAX_WINDOW, FixedWidth, Mode, parse_mode
from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS


def test_greedy_reads_back_after_every_token():
    for window in (None, 1, 8):
        assert parse_mode("greedy", window) == Mode("greedy", width=1, window=1, depth=1)


def test_loop():
    assert parse_mode("loop") == Mode("loop", width=1, window=DEFAULT_WINDOW, depth=3)
    assert parse_mode("loop", 7).window == 7


@pytest.mark.parametrize("width", WIDTHS)
def test_fixed(width):
    assert parse_mode(f"fixed:{width}") == Mode(f"fixed:{width}", width, DEFAULT_WINDOW)
    assert parse_mode(f"fixed:{width}", MAX_WINDOW).window == MAX_WINDOW


def test_adaptive_leaves_width_and_window_open():
    assert parse_mode("adaptive") == Mode("adaptive", None, None)
    assert parse_mode("adaptive", 2) == Mode("adaptive", None, 2)


def test_only_steps_of_one_node_need_no_draft():
    drafting = {name: parse_mode(name).drafts for name in ("greedy", "loop", "fixed:1", "fixed:2", "adaptive")}
    assert drafting == {"greedy": False, "loop": False, "fixed:1": False, "fixed:2": True, "adaptive": True}


@pytest.mark.parametrize("name", ["", "beam", "Greedy", "fixed", "fixed:", "fixed:x", "fixed:-2", " loop", "fixed:8\n"])
def test_unknown_modes_are_named_beside_those_there_are(name):
    with pytest.raises(UsageError, match="fixed:N and adaptive") as caught:
        parse_mode(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("width", [0, 3, 33, 64])
def test_widths_that_there_are_not(width):
    with pytest.raises(UsageError, match=f"no width {width}; the widths are 1, 2, 4, 8, 16, 32"):
        parse_mode(f"fixed:{width}")


@pytest.mark.parametrize("mode", ["greedy", "loop", "fixed:8", "adaptive"])
@pytest.mark.parametrize("window", [0, -1, MAX_WINDOW + 1])
def test_windows_out_of_range(mode, window):
    with pytest.raises(UsageError, match=f"1 to {MAX_WINDOW} steps, not {window}"):
        parse_mode(mode, window)


def test_a_fixed_width_learns_nothing():
    steering = FixedWidth(8)
    steering.begin()
    steering.observe([(9, 8, 8)])
    steering.completed(8, 4, 1000.0)
    assert steering.width() == 8
