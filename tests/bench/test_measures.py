"""What the measurements compute from their samples, without a device."""

from types import SimpleNamespace

import pytest

from pyweb.bench.modes import Pace, pace_of
from pyweb.bench.roles import group, weight_buffers, weight_bytes
from pyweb.bench.settings import SOFTWARE, Settings, settings_for
from pyweb.bench.tasks import TASKS, tasks_of
from pyweb.bench.widths import windows_of
from pyweb.engine import Generation
from pyweb.errors import UsageError
from pyweb.plan.dispatch import Binding, Dispatch, Kernel
from pyweb.plan.packed import PackedMatrix, Slice
from pyweb.plan.weights import WeightPlan
from pyweb.weights.layout import Q4


def engine(software: bool):
    return SimpleNamespace(tuning=SimpleNamespace(barrier_free=software))


def test_a_software_adapter_measures_less_unless_told_otherwise():
    assert settings_for(engine(False), {}) == Settings()
    assert settings_for(engine(True), {"runs": None}) == SOFTWARE
    given = settings_for(engine(True), {"runs": 7, "widths": [1, 32]})
    assert (given.runs, given.widths, given.tokens) == (7, (1, 32), SOFTWARE.tokens)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"speed": 1}, "no setting speed"),
        ({"runs": 0}, "positive whole numbers, not 0"),
        ({"tokens": "8"}, "positive whole numbers, not '8'"),
        ({"widths": [3]}, "no width 3"),
        ({"widths": []}, "widths is a list"),
        ({"lengths": 64}, "lengths is a list"),
        ({"modes": ["fast"]}, "'fast' is unknown"),
        ({"host_modes": ["adaptive"]}, "a fixed width, not for adaptive"),
        ({"batch": -1}, "a number of milliseconds, not -1"),
    ],
)
def test_settings_that_make_no_sense(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        settings_for(engine(False), settings)


def test_the_pace_is_that_of_whole_windows_behind_the_first():
    reply = Generation(
        ids=list(range(11)),
        records=[(1, 0, 8), (2, 0, 8), (3, 0, 8), (1, 0, 8), (1, 0, 8), (3, 0, 8)],
        windows=[(8, 2, 9.0), (8, 2, 0.5), (8, 1, 0.4), (8, 1, 0.0)],
        first_token_time=9.0,
        decode_time=0.9,
    )
    assert pace_of(reply) == Pace(0.5, 4, 2)
    assert pace_of(reply).milliseconds == 125


def test_a_reply_of_one_window_counts_as_a_whole():
    reply = Generation(ids=[5, 6], records=[(1, 0, 1), (1, 0, 1)], windows=[(1, 2, 0.2)], first_token_time=0.2)
    assert pace_of(reply) == Pace(0.2, 2, 2)


@pytest.mark.parametrize(("prompt", "width"), [(769, 1), (769, 16), (769, 32), (255, 8), (127, 32)])
def test_windows_keep_all_nodes_valid(prompt, width):
    window, windows = windows_of(prompt, width, 64)
    assert windows >= 2 and 1 <= window <= 4
    assert window * windows * width <= prompt - 1


def test_dispatches_are_grouped_by_role_and_weights_found_wherever_the_plan_holds_them():
    plan = WeightPlan()
    embedding = PackedMatrix(Q4, 100, 64, (Slice(0, 100, Binding(1, 6400), Binding(2, 800)),))
    parts = (Slice(0, 32, Binding(3, 320), Binding(4, 40)), Slice(32, 32, Binding(5, 320), Binding(6, 40)))
    plan.matrices |= {"embedding": embedding, "down": PackedMatrix(Q4, 64, 64, parts)}
    plan.vectors["norm"] = Binding(7, 256)
    buffers = weight_buffers(plan)
    assert buffers == {1, 2, 3, 4, 5, 6, 7}

    activations = Binding(9, 4096)
    down = [Dispatch(Kernel.of("matvec"), (activations, part.codes, part.scales), (1, 1, 1)) for part in parts]
    embed = Dispatch(Kernel.of("embed"), (activations, Binding(1, 6400), Binding(2, 800)), (1, 1, 1))
    roles = group([embed, *down, embed])
    assert roles == {"embed": [embed, embed], "matvec": down}
    assert weight_bytes(down, buffers, 8, 100) == 720
    # A table is looked up a row a node.
    assert weight_bytes([embed], buffers, 8, 100) == 8 * 72


def test_tasks_from_rows():
    rows = [{"instruction": "Why?"}, {"id": "b", "instruction": "How?", "page": "A text.", "reply": "..."}]
    assert [(task.id, task.page) for task in tasks_of(rows)] == [("1", ""), ("b", "A text.")]
    for wrong in ([], [{"page": "only"}], ["text"], [{"id": 1, "instruction": "a"}, {"id": 1, "instruction": "b"}]):
        with pytest.raises(UsageError):
            tasks_of(wrong)


def test_the_built_in_tasks_differ():
    assert len({task.id for task in TASKS}) == len(TASKS) >= 5
    assert all(task.page and task.instruction for task in TASKS)
