import gzip
import json
import random
from dataclasses import dataclass

import pytest

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.speculation import control_simulation
from pyweb.speculation.control_simulation import CURVES, ReplySteps, compare, simulate, trace_steps
from pyweb.speculation.controller import Controller
from pyweb.speculation.costs import Costs

NEVER = bytes([1] * len(WIDTHS))
ALWAYS = bytes([1, 2, 4, 8, 9, 9])


def costs_of(curve: str, unit: float = 1.0) -> Costs:
    return Costs({width: unit * ratio for width, ratio in zip(WIDTHS, CURVES[curve], strict=True)})


def stream(steps: int, tokens: bytes, match: int) -> ReplySteps:
    """A text in which every position has the same match and the same tokens by width."""
    return ReplySteps("made up", bytes([match] * steps), [tokens] * steps)


def mixed(steps: int, seed: int = 3) -> ReplySteps:
    """Passages that are copied and passages that aren't."""
    numbers = random.Random(seed)
    matches, tokens = bytearray(), []
    while len(tokens) < steps:
        copied = numbers.random() < 0.5
        length = numbers.randrange(5, 60)
        matches += bytes(numbers.randrange(6, 9) if copied else numbers.randrange(3) for _ in range(length))
        tokens += [ALWAYS if copied else NEVER] * length
    return ReplySteps("mixed", bytes(matches[:steps]), tokens[:steps])


def played(controller: Controller, reply: ReplySteps, curve: str, window: int = 1) -> float:
    return simulate(controller, reply, CURVES[curve], window)[0]


@pytest.mark.parametrize(("curve", "first"), [("flat", 8), ("steady", 4), ("steep", 1)])
@pytest.mark.parametrize("unit", [0.3, 40.0])
def test_first_width_follows_the_costs(curve, first, unit):
    assert Controller(costs_of(curve, unit)).width() == first


def test_same_calls_same_widths():
    logs = []
    for _ in range(2):
        controller = Controller(costs_of("steady"))
        played(controller, mixed(400), "steady", window=2)
        logs.append(controller.log)
    assert logs[0] == logs[1]
    assert len({entry[1] for entry in logs[0] if entry[0] == "width"}) > 2


def test_replays_a_later_reply_from_its_log():
    controller = Controller(costs_of("steep"))
    played(controller, mixed(300), "steep")
    played(controller, mixed(300, seed=9), "steady", window=2)
    recorded = json.loads(json.dumps(controller.log))
    again = Controller.replay(recorded)
    assert json.loads(json.dumps(again.log)) == recorded
    assert again.to_dict() == controller.to_dict()


def test_a_log_starts_where_the_reply_did():
    with pytest.raises(UsageError):
        Controller.replay([("width", 1)])


@pytest.mark.parametrize("widths", [(), (3,), (1, 64)])
def test_refuses_unknown_widths(widths):
    with pytest.raises(UsageError):
        Controller(costs_of("flat"), widths)


@pytest.mark.parametrize("widths", [(1,), (4,), (2, 8), (1, 2, 4, 8)])
def test_keeps_to_the_widths_given(widths):
    controller = Controller(costs_of("flat"), widths)
    played(controller, mixed(300), "flat")
    assert {entry[1] for entry in controller.log if entry[0] == "width"} <= set(widths)


def test_always_accepted_goes_wide_where_width_is_cheap():
    _, steps = simulate(Controller(costs_of("flat")), stream(2000, ALWAYS, 8), CURVES["flat"])
    assert steps[8] > 0.95 * sum(steps.values())
    _, steps = simulate(Controller(costs_of("steep")), stream(2000, ALWAYS, 8), CURVES["steep"])
    assert steps[8] + steps[4] > 0.9 * sum(steps.values())


@pytest.mark.parametrize("match", [0, 2, 8])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_never_accepted_costs_little_where_width_is_dear(match, window):
    plain = 1500.0
    spent = played(Controller(costs_of("steep")), stream(1500, NEVER, match), "steep", window)
    assert plain <= spent < 1.03 * plain


@pytest.mark.parametrize("curve", CURVES)
def test_never_accepted_ends_in_plain_decoding(curve):
    controller = Controller(costs_of(curve))
    played(controller, stream(500, NEVER, 3), curve)
    _, steps = simulate(controller, stream(500, NEVER, 3), CURVES[curve])
    assert steps[1] > 0.8 * sum(steps.values())


@pytest.mark.parametrize("curve", CURVES)
def test_recovers_when_text_becomes_predictable(curve):
    controller = Controller(costs_of(curve))
    played(controller, stream(1000, NEVER, 3), curve)
    milliseconds = played(controller, stream(1000, ALWAYS, 3), curve)
    best = min(stream(1000, ALWAYS, 3).milliseconds(i, cost) for i, cost in enumerate(CURVES[curve]))
    assert milliseconds < 1.6 * best


def test_long_matches_need_no_probe():
    controller = Controller(costs_of("steep"))
    for _ in range(20):
        controller.width()
        controller.observe([(1, 0, 1)])
    assert controller.width() == 1
    controller.observe([(1, 8, 1)])
    assert controller.width() > 1


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("window", [1, 2])
def test_beats_fixed_widths_on_changing_text(curve, window):
    outcome = compare([mixed(400, seed) for seed in range(8)], CURVES[curve], window)["all"]
    assert outcome.against_best < 0.04
    assert outcome.against_plain < 0.0


def test_a_cost_measured_too_high_is_corrected():
    wrong = {**dict(zip(WIDTHS, CURVES["flat"], strict=True)), 8: 4.1}
    controller = Controller(Costs(wrong))
    for seed in range(30):
        played(controller, mixed(400, seed), "flat")
    assert controller.costs[8] == pytest.approx(1.2, rel=0.1)
    assert simulate(controller, stream(400, ALWAYS, 8), CURVES["flat"])[1][8] > 20


def test_a_cost_measured_too_low_is_corrected():
    controller = Controller(costs_of("flat"))
    played(controller, mixed(400), "steep")
    spent = played(controller, stream(1000, NEVER, 2), "steep")
    assert spent < 1.03 * 1000


def test_empty_windows_after_a_reply_teach_nothing():
    controller = Controller(costs_of("flat"))
    before = controller.to_dict()
    controller.width()
    controller.observe([])
    controller.completed(8, 0, 0.01)
    assert controller.to_dict() == before


@dataclass
class Tree:
    tokens: list[int]
    parents: list[int]


class Lookup:
    """Prompt lookup: a chain from the newest earlier occurrence of the last token."""

    def __init__(self, memory=()):
        self.tokens = list(memory)

    def observe(self, tokens):
        self.tokens += tokens

    def draft(self, nodes):
        *earlier, last = self.tokens
        found = len(earlier) - 1 - earlier[::-1].index(last) if last in earlier else len(earlier)
        chain = self.tokens[found + 1 : found + min(nodes, 9)]
        return Tree([last, *chain], list(range(-1, len(chain))))


TRACES = [
    {"task": "copy", "prompt": [9, 1, 2, 3, 4, 5, 6, 7, 8], "reply": [1, 2, 3, 4, 5, 0]},
    {"task": "new", "prompt": [9, 1], "reply": [21, 22, 23, 0]},
]


def test_a_reply_becomes_a_table():
    copy, new = trace_steps(TRACES, Lookup)
    assert list(copy.tokens[0]) == [1, 2, 4, 5, 5, 5]
    assert list(copy.tokens[4]) == [1] * 6
    assert list(copy.matches) == [1, 2, 3, 4, 5]
    assert [list(row) for row in new.tokens] == [[1] * 6] * 3
    assert copy.milliseconds(2, 1.1) == pytest.approx(2.2)


def test_memory_holds_earlier_replies():
    again = trace_steps([TRACES[1], TRACES[1]], Lookup, memory=True)[1]
    assert list(again.tokens[0]) == [1, 2, 3, 3, 3, 3]


def test_choices_take_effect_three_windows_late():
    controller = Controller(costs_of("flat"))
    simulate(controller, stream(12, NEVER, 0), CURVES["flat"], window=2)
    calls = [entry[0] for entry in controller.log if entry[0] != "completed"]
    assert calls[:6] == ["begin", "width", "width", "width", "observe", "width"]
    assert calls.count("width") == calls.count("observe")


def test_command_prints_a_line_a_curve(tmp_path, capsys, monkeypatch):
    path = tmp_path / "traces.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(trace) for trace in TRACES).encode()))
    (tmp_path / "my_drafter.py").write_text(
        "from types import SimpleNamespace as Tree\n"
        "class Nothing:\n"
        "    def __init__(self, memory): pass\n"
        "    def observe(self, tokens): self.last = tokens[-1]\n"
        "    def draft(self, nodes): return Tree(tokens=[self.last], parents=[-1])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    control_simulation.main([str(path), "--drafter", "my_drafter:Nothing", "--window", "2", "--tasks"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["flat", "2", name] for name in ("all", "copy", "new")
    ]
    assert len(lines) == 10
    with pytest.raises(UsageError):
        control_simulation.main([str(path), "--drafter", "my_drafter"])
