"""Counting steps and tokens, the trace files, and the command around them."""

import gzip
import json
from argparse import Namespace

import pytest

from pyweb.cli.simulate import simulate
from pyweb.errors import UsageError
from pyweb.speculation.replay import Entry, known_drafters, replay, steps_of
from pyweb.speculation.traces import Trace, read_traces
from pyweb.speculation.tree import Tree

COLUMNS = ["lookup-8", "suffix-16", "mix-8", "mix-16", "mix-32", "gpu-8", "gpu-16", "gpu-32"]


class Counting:
    """A drafter of one's own: after n come n + 1, n + 2, ..."""

    def __init__(self, memory=None):
        self.seen = []

    def observe(self, tokens):
        self.seen.extend(tokens)

    def draft(self, nodes):
        chain = min(nodes, 9)
        return Tree([self.seen[-1] + i for i in range(chain)], list(range(-1, chain - 1)))


def traces():
    """Two tasks: one that repeats its page, one that repeats earlier replies."""
    found = []
    for i in range(6):
        page = [100 + 7 * i + j for j in range(7)] * 2
        found.append(Trace(f"copy/{i}", "copy", [1, *page, 2], [*page[:7], *page[:7], 3]))
        found.append(Trace(f"form/{i}", "form", [1, 50 + i, 2], [60, 61, 62, 50 + i, 63, 64, 65, 66, 3]))
    return found


def write(path, records, opener=gzip.open):
    with opener(path, "wt") as file:
        for record in records:
            file.write(json.dumps(record if isinstance(record, dict) else vars(record)) + "\n")
    return path


@pytest.mark.parametrize(
    ("reply", "widths", "steps"),
    [
        ([5], (8,), [0]),
        ([5, 9], (8,), [1]),
        ([5, 9, 8], (8,), [2]),
        (list(range(20)), (1, 2, 4, 8, 32), [19, 10, 5, 3, 3]),
        ([1, 2, 3, 9, 10, 4], (2, 32), [3, 2]),
    ],
)
def test_a_step_emits_the_accepted_tokens_and_one_more(reply, widths, steps):
    drafter = Counting()
    assert steps_of(drafter, [0], reply, widths) == steps
    assert drafter.seen == [0, *reply]


def test_each_width_counts_as_if_replayed_alone():
    for trace in traces():
        for name, entry in known_drafters().items():
            together = steps_of(entry.start([]), trace.prompt, trace.reply, (4, 8, 32))
            for width, steps in zip((4, 8, 32), together, strict=True):
                alone = known_drafters()[name].start([])
                assert steps_of(alone, trace.prompt, trace.reply, (width,)) == [steps]


def test_a_drafter_of_ones_own_runs_in_the_replay():
    tally = replay([Trace("a", "count", [0], list(range(1, 19)))], {"mine": Entry(Counting, (4, 8))})
    assert tally.tasks == {"count": {"mine-4": 17 / 5, "mine-8": 17 / 3}}


def test_a_tree_that_no_step_can_verify_is_refused():
    class Broken(Counting):
        def draft(self, nodes):
            return Tree([0, 1], [-1, 1])

    with pytest.raises(UsageError, match="parents"):
        replay([Trace("a", "t", [0], [1, 2])], {"broken": Entry(Broken, (8,))})


def test_replay_is_deterministic_and_memory_helps_where_replies_share_a_form():
    plain = replay(traces(), known_drafters()).tasks
    assert plain == replay(traces(), known_drafters()).tasks
    remembered = replay(traces(), known_drafters(), with_memory=True).tasks
    assert list(plain["copy"]) == COLUMNS
    for column in COLUMNS:
        assert plain["copy"][column] > 2.5
        assert remembered["form"][column] > plain["form"][column]


def test_means_are_of_tasks_not_of_replies():
    tally = replay(
        [Trace(str(i), t, [0], r) for i, (t, r) in enumerate([("a", [1, 2, 3]), ("a", [1, 2, 3]), ("b", [1, 5])])],
        {"mine": Entry(Counting, (8,))},
    )
    assert tally.tasks == {"a": {"mine-8": 2.0}, "b": {"mine-8": 1.0}}
    assert tally.mean == {"mine-8": 1.5}


@pytest.mark.parametrize("memory", [False, True])
def test_the_command_prints_a_table_and_a_last_line_of_json(tmp_path, capsys, memory):
    path = write(tmp_path / "t.jsonl.gz", traces())
    simulate(Namespace(traces=str(path), memory=memory, json=True))
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    assert list(result["mean"]) == COLUMNS
    assert set(result["tasks"]) == {"copy", "form"}
    assert lines[0].split() == ["task", *COLUMNS]
    assert [line.split()[0] for line in lines[1:4]] == ["copy", "form", "mean"]
    assert float(lines[3].split()[1]) == pytest.approx(result["mean"]["lookup-8"], abs=1e-3)


def test_plain_and_gzipped_files_read_alike(tmp_path):
    zipped, plain = write(tmp_path / "a.gz", traces()), write(tmp_path / "a", traces(), open)
    assert read_traces(zipped) == read_traces(plain) == traces()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "can't be read"),
        (b"", "no traces"),
        (b"\x1f\x8b\x08\x00broken", "damaged"),
        (gzip.compress(b'{"task": "a"}')[:-9], "damaged"),
        (b"\xff\xfe", "not text"),
        (b"{", "line 1, is not JSON"),
        (b"[1]", "no task"),
        (b'{"task": "a", "prompt": [1], "reply": [1]}\n{"task": "a", "prompt": [], "reply": [1]}', "line 2.*prompt"),
        (b'{"task": "a", "prompt": [1], "reply": [-1]}', "reply"),
        (b'{"task": "a", "prompt": [1], "reply": [true]}', "reply"),
        (b'{"task": "a", "prompt": [1], "reply": "text"}', "reply"),
    ],
)
def test_bad_files_are_named(tmp_path, data, says):
    path = tmp_path / "t.jsonl"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=says):
        read_traces(path)
