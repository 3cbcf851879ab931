"""The kernels that end or begin a step, against their twins in Python: choose, accept, prefill, nll."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from pyweb.plan.control import LONGEST_PATH, MAX_NODES, RECORDS, RING
from tests.gpu.reference import chain, random_tree
from tests.gpu.stage import CONTEXT

STOP, LIMIT, FULL = 1, 2, 4


@dataclass
class Reply:
    """Twin of the state that `accept` moves on."""

    length: int
    context_length: int
    order: list[int]
    limits: tuple[int, int]
    stops: tuple[int, ...] = ()
    flags: int = 0
    ids: list[int] = field(default_factory=list)
    records: list[tuple[int, int, int]] = field(default_factory=list)

    def emit(self, token):
        self.ids.append(token)
        self.context_length += 1
        self.flags |= STOP if token in self.stops else 0
        self.flags |= LIMIT if len(self.ids) >= self.limits[0] else 0
        self.flags |= FULL if self.context_length >= self.limits[1] else 0

    def accept(self, nodes, choices, width):
        path = [0]
        self.emit(choices[0])
        while not self.flags and len(path) < LONGEST_PATH:
            node = path[-1]
            children = [i for i in range(1, len(nodes)) if nodes[i][1] == node and nodes[i][0] == choices[node]]
            if not children:
                break
            path.append(children[0])
            self.emit(choices[children[0]])
        for depth, node in enumerate(path):
            a, b = self.length + depth, self.length + node
            self.order[a], self.order[b] = self.order[b], self.order[a]
        self.length += len(path)
        self.records.append((len(path), 0, width))


def draft(random, choices, count):
    """A tree in which most children carry their parent's choice."""
    nodes = random_tree(random, len(choices), count)
    for node in nodes[1:]:
        if random.random() < 0.8:
            node[0] = choices[node[1]]
    return nodes


@pytest.fixture
def random():
    return np.random.default_rng(21)


def end_step(s, nodes, reply, logits, width):
    """One step's choose and accept on the device, from the twin's state."""
    s.control(nodes, reply.length, rest=(reply.context_length, len(reply.ids), len(reply.records)))
    s.write(s.buffers.logits, logits)
    dispatches = s.dispatches(width)
    s.run(dispatches["choose"] + dispatches["accept"])
    return s.state()


@pytest.mark.parametrize("limits", [(1000, 1000), (17, 1000), (1000, 40)], ids=["free", "limit", "full"])
@pytest.mark.parametrize("width", [1, 8, 32])
def test_choose_and_accept(stage, tuning, width, limits, random):
    s, prompt = stage(tuning), 21
    reply = Reply(prompt - 1, prompt, s.order().tolist(), limits)
    s.request(*limits, prompt)
    while not reply.flags and reply.length < 60:
        logits = random.integers(-30, 30, (MAX_NODES, s.decoder.vocabulary))  # integers: plenty of ties
        choices = logits.argmax(1).tolist()
        nodes = draft(random, choices, width)
        emitted, steps = len(reply.ids), len(reply.records)
        state = end_step(s, nodes, reply, logits.astype(np.float32), width)
        reply.accept(nodes.tolist(), choices, width)
        assert state.tokens(emitted) == reply.ids[emitted:]
        assert state.records(steps) == reply.records[steps:]
        assert (state.length, state.context_length, state.flags) == (reply.length, reply.context_length, reply.flags)
        assert s.read(s.buffers.order, np.uint32).tolist() == reply.order
        context = s.read(s.buffers.context, np.uint32)[prompt : reply.context_length]
        assert context.tolist() == reply.ids
    assert reply.flags == {1000: FULL if limits[1] == 40 else 0, 17: LIMIT}[limits[0]]
    assert len({accepted for accepted, _, _ in reply.records}) > (width > 1)


def test_a_path_is_cut_at_a_stop_token(stage, tuning):
    """A chain whose every token is right: what lies behind the stop token isn't emitted."""
    s, tokens = stage(tuning), np.arange(10, 18)
    logits = np.zeros((MAX_NODES, s.decoder.vocabulary), np.float32)
    logits[np.arange(8), tokens + 1] = 1
    reply = Reply(4, 5, s.order().tolist(), (100, 100), stops=(14,))
    s.request(*reply.limits, 5, reply.stops)
    state = end_step(s, chain(8, tokens), reply, logits, 8)
    assert (state.tokens(0), state.flags, state.length) == ([11, 12, 13, 14], STOP, 8)


def single(s, logits, *, stops=(), limits=(1000, 1000), emitted=0, steps=0, repeats=1, length=3):
    """Steps of one node with the same logits throughout; the state afterwards."""
    s.order(shuffled=False)
    s.request(*limits, 4, stops)
    s.control(chain(1), length, rest=(length + 1, emitted, steps))
    s.write(s.buffers.logits, logits.astype(np.float32))
    dispatches = s.dispatches(1)
    s.run(dispatches["choose"] + dispatches["accept"], repeats)
    return s.state()


@pytest.mark.parametrize("winners", [[0], [226], [3, 4], [63, 64], [100, 36, 164], list(range(227))])
def test_ties_go_to_the_lowest_id(stage, tuning, winners):
    for top in (-2.5, 0.0, 3.0):
        logits = np.full(227, top - 1)
        logits[winners] = top
        assert single(stage(tuning), logits).tokens(0) == [min(winners)]


@pytest.mark.parametrize(
    "options, flags, count",
    [
        ({"stops": (9,)}, STOP, 1),
        ({"stops": (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 9)}, STOP, 1),
        ({"stops": (8,)}, 0, 20),
        ({"limits": (7, 1000)}, LIMIT, 7),
        ({"limits": (1000, 12)}, FULL, 8),
        ({"limits": (8, 12)}, LIMIT | FULL, 8),
        ({"stops": (9,), "limits": (1, 1000)}, STOP | LIMIT, 1),
        ({"stops": ()}, 0, 20),
    ],
)
def test_the_rest_of_a_finished_window_emits_nothing(stage, tuning, options, flags, count):
    state = single(stage(tuning), np.arange(227) == 9, repeats=20, **options)
    assert (state.flags, state.emitted, state.steps, state.tokens(0)) == (flags, count, count, [9] * count)
    assert (state.length, state.context_length) == (3 + count, 4 + count)
    assert state.finish_reason == ("stop" if flags & STOP else "length" if flags else None)


def test_ring_and_records_wrap(stage, tuning):
    first, steps = RING - 5, RECORDS * 3 - 2
    state = single(stage(tuning), np.arange(227) == 9, emitted=first, steps=steps, repeats=20, limits=(5000, 5000))
    assert state.emitted == first + 20
    assert state.tokens(first) == [9] * 20
    assert state.records(steps) == [(1, 0, 1)] * 20


@pytest.mark.parametrize("width", [1, 2, 8, 32])
@pytest.mark.parametrize("count", [1, 2, 8, 33, 34, 75])
def test_prefill(stage, tuning, width, count, random):
    """Chunk after chunk, then the last token alone."""
    s = stage(tuning)
    prompt = random.integers(0, 227, count, np.uint32)
    s.write(s.buffers.context, prompt)
    s.request(10, CONTEXT, count)
    s.control(chain(0).reshape(0, 4), 0, valid=0, rest=(count, 0, 0))
    done = 0
    while done < count - 1:
        s.run(s.dispatches(width)["prefill"])
        chunk = min(width, count - 1 - done)
        assert s.nodes().tolist() == chain(chunk, prompt[done:]).tolist()
        assert s.state().length == done
        done += chunk
    s.run(s.dispatches(width)["prefill"])
    assert s.nodes().tolist() == [[prompt[-1], 0, 0, 1]]
    assert s.state().length == count - 1


def test_likelihood(stage, tuning, random):
    s = stage(tuning)
    context = random.integers(0, 227, s.buffers.slots, np.uint32)
    logits = random.normal(0, 8, (8, 227)).astype(np.float32)
    logits[1] -= 500
    s.write(s.buffers.context, context)
    s.write(s.buffers.logits, logits)
    s.control(chain(8), 40)
    s.run(s.dispatches(8)["nll"])
    exact = logits.astype(np.float64)
    largest = exact.max(1)
    total = np.log(np.exp(exact - largest[:, None]).sum(1)) + largest
    expected = total - exact[np.arange(8), context[41:49]]
    np.testing.assert_allclose(s.read(s.buffers.nll)[40:48], expected, rtol=1e-5, atol=1e-5)
