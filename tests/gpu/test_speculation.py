"""Replies with draft trees have the ids of plain decoding, and take the steps that the drafter's twin foretells."""

import asyncio

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyweb.engine import Sampling
from pyweb.kernels.tuning import GPU, SOFTWARE, WIDTHS
from pyweb.plan.control import LONGEST_PATH, MAX_NODES
from pyweb.speculation.fixed import FixedDrafter
from tests.gpu.test_engine import cache_of

TOKENS = 36
SAMPLINGS = {
    "greedy": Sampling(),
    "top-p": Sampling(temperature=0.9, top_p=0.9, seed=3),
    "top-k": Sampling(temperature=1.2, top_k=20, min_p=0.05, seed=1 << 40),
    "penalties": Sampling(temperature=1.0, repetition_penalty=1.2, presence_penalty=0.5, frequency_penalty=0.2, seed=5),
    "penalized greedy": Sampling(repetition_penalty=1.5, frequency_penalty=0.3),
    "bias": Sampling(temperature=0.7, top_p=0.95, logit_bias=((48, float("-inf")), (7, 2.0)), seed=9),
}
FIXED = [f"fixed:{width}" for width in WIDTHS]


@pytest.fixture(scope="session")
def prompt(reference):
    return reference("tied")["ids"][:20].tolist()


@pytest.fixture(scope="session")
def tiny(engine):
    return engine("tied", SOFTWARE)


def generate(engine, prompt, **options):
    return asyncio.run(engine.generate(prompt, **{"max_tokens": TOKENS} | options))


@pytest.fixture(scope="session")
def plain(tiny, prompt):
    """Ids of the plain reply by name of its sampling."""
    return {name: generate(tiny, prompt, sampling=sampling).ids for name, sampling in SAMPLINGS.items()}


def faulty(ids):
    """A memory of the reply with a wrong token now and then, so that paths of all lengths are accepted."""
    wrong = {3, 9, 11, 12, 20, 27}
    return [token + 1 if i in wrong else token for i, token in enumerate(ids)]


def foretold(prompt, ids, memory, width):
    """Records of a reply's steps by the twin: (tokens, match length, width)."""
    drafter, records, done = FixedDrafter(memory), [], 0
    drafter.observe(prompt)
    while done < len(ids):
        tree = drafter.draft(width)
        emitted = min(1 + len(tree.accepted(ids[done:])), len(ids) - done)
        records.append((emitted, drafter.match_length, width))
        drafter.observe(ids[done : done + emitted])
        done += emitted
    return records


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("mode", [*FIXED, "adaptive"])
def test_ids_of_plain_decoding(tiny, prompt, plain, mode, sampling):
    ids = plain[sampling]
    reply = generate(tiny, prompt, mode=mode, sampling=SAMPLINGS[sampling], remembered=faulty(ids))
    assert (reply.ids, reply.finish_reason, reply.mode) == (ids, "length", mode)
    assert sum(emitted for emitted, _, _ in reply.records) == len(ids)
    if mode in FIXED[1:]:
        assert reply.records == foretold(prompt, ids, faulty(ids), int(mode[6:]))
        assert reply.steps < len(ids)


@pytest.mark.parametrize("mode", [*FIXED[1:], "adaptive"])
def test_without_memory(tiny, prompt, plain, mode):
    reply = generate(tiny, prompt, mode=mode, max_tokens=24)
    assert reply.ids == plain["greedy"][:24]
    if mode in FIXED:
        assert reply.records == foretold(prompt, reply.ids, [], int(mode[6:]))


@pytest.mark.parametrize("name, mode", [("greedy", "fixed:32"), ("penalties", "fixed:4")])
def test_workgroup_kernels(engine, prompt, plain, name, mode):
    """The reply of the kernels' other cut, which need not be the same one, again with drafts."""
    loaded = engine("tied", GPU)
    ids = generate(loaded, prompt, max_tokens=14, sampling=SAMPLINGS[name]).ids
    reply = generate(loaded, prompt, max_tokens=14, window=1, mode=mode, sampling=SAMPLINGS[name], remembered=ids)
    assert reply.ids == ids and reply.steps <= 5


@pytest.mark.parametrize("name", ["greedy", "top-p"])
def test_grouped_queries_and_a_head_of_its_own(engine, prompt, name):
    loaded = engine("untied", SOFTWARE)
    ids = generate(loaded, prompt, sampling=SAMPLINGS[name]).ids
    reply = generate(loaded, prompt, mode="fixed:16", sampling=SAMPLINGS[name], remembered=faulty(ids))
    assert reply.ids == ids
    assert reply.records == foretold(prompt, ids, faulty(ids), 16)


@pytest.mark.parametrize("window", [1, 2, 4, 8, 32])
def test_windows_of_any_size(tiny, prompt, plain, window):
    pieces, ids = [], plain["greedy"]
    options = {"window": window, "remembered": faulty(ids), "on_tokens": pieces.append}
    fixed = generate(tiny, prompt, mode="fixed:8", **options)
    assert fixed.ids == ids == sum(pieces, [])
    assert fixed.records == foretold(prompt, ids, faulty(ids), 8)
    assert [steps for _, steps, _ in fixed.windows[:-1]] == [window] * (len(fixed.windows) - 1)
    assert generate(tiny, prompt, mode="adaptive", **options).ids == ids


def test_repetitive_material_takes_fewer_steps_than_tokens(tiny, prompt, plain):
    ids = plain["greedy"]
    reply = generate(tiny, prompt, mode="fixed:8", remembered=ids * 3)
    assert reply.ids == ids
    assert reply.steps <= len(ids) // 4
    assert reply.widths == {8: reply.steps}
    assert {width for width, _, _ in reply.windows} == {8}


def test_no_path_is_longer_than_nine(tiny, prompt, plain):
    reply = generate(tiny, prompt, mode="fixed:32", remembered=plain["greedy"])
    assert max(emitted for emitted, _, _ in reply.records) == 9


def test_the_choice_of_a_token_that_no_vocabulary_has(tiny, prompt, plain):
    """A damaged memory only costs steps."""
    ids = plain["greedy"]
    wild = [4_000_000_000 if i % 5 == 4 else token for i, token in enumerate(ids)]
    reply = generate(tiny, prompt, mode="fixed:8", remembered=wild, sampling=SAMPLINGS["greedy"])
    assert reply.ids == ids
    penalized = plain["penalties"]
    wild = [1 << 31 if i % 5 == 4 else token for i, token in enumerate(penalized)]
    assert generate(tiny, prompt, mode="fixed:8", remembered=wild, sampling=SAMPLINGS["penalties"]).ids == penalized


def test_watching_shows_the_twins_trees(tiny, prompt, plain):
    ids, seen = plain["greedy"], []
    reply = generate(tiny, prompt, mode="fixed:8", remembered=faulty(ids), watch=lambda *step: seen.append(step))
    assert reply.ids == ids == sum((tokens for _, _, tokens in seen), [])
    assert [record for _, record, _ in seen] == [None, *reply.records]
    drafter = FixedDrafter(faulty(ids))
    drafter.observe(prompt)
    for nodes, _, tokens in seen[:-1]:
        drafter.observe(tokens)
        tree = drafter.draft(32)
        assert nodes == list(zip(tree.tokens, [0, *tree.parents[1:]], strict=True))


@pytest.mark.parametrize("name", ["greedy", "penalties"])
def test_a_stop_token_inside_a_path(tiny, prompt, plain, name):
    ids, inside = plain[name], 0
    for at in (0, 1, 4, 5, 6, 7, 13, 17):
        stop, pieces = ids[at], []
        options = {"stops": [stop], "sampling": SAMPLINGS[name], "remembered": ids, "on_tokens": pieces.append}
        reply = generate(tiny, prompt, mode="fixed:8", **options)
        expected = ids[: ids.index(stop)]
        assert (reply.ids, reply.finish_reason) == (expected, "stop")
        assert sum(pieces, []) == expected
        assert reply.records == foretold(prompt, [*expected, stop], ids, 8)
        longer = foretold(prompt, ids, ids, 8)[reply.steps - 1]
        inside += reply.records[-1][0] < longer[0]
    assert inside >= 3


@pytest.mark.parametrize("mode", ["fixed:8", "adaptive"])
def test_the_token_limit_inside_a_path(tiny, prompt, plain, mode):
    ids = plain["greedy"]
    for limit in (1, 2, 3, 5, 8, 9, 10, 13):
        reply = generate(tiny, prompt, mode=mode, max_tokens=limit, remembered=ids)
        assert (reply.ids, reply.finish_reason) == (ids[:limit], "length")
        assert sum(emitted for emitted, _, _ in reply.records) == limit


@pytest.mark.parametrize("mode", ["fixed:8", "fixed:32"])
def test_a_full_context_inside_a_path(tiny, prompt, mode):
    """The last positions of the cache, where a step's nodes lie in its spare slots."""
    for room in (1, 2, 7, 12):
        long = (prompt * 5)[: tiny.context - room]
        ids = generate(tiny, long).ids
        reply = generate(tiny, long, mode=mode, remembered=[*long[-8:], *ids, 1, 2, 3])
        assert (reply.ids, reply.finish_reason, len(ids)) == (ids, "length", room)
        assert sum(emitted for emitted, _, _ in reply.records) == room


def test_speculation_leaves_the_cache_of_a_prefill(tiny, prompt, plain):
    """The permutation stays one, and leads to the keys and values of the committed tokens."""
    ids = plain["greedy"]
    count = len(prompt) + len(ids) - 1
    generate(tiny, prompt, mode="fixed:16", remembered=faulty(ids))
    speculative, order = cache_of(tiny, count), slots(tiny)
    assert sorted(order) == list(range(len(order))) != order
    asyncio.run(tiny.trace([*prompt, *ids], 32))
    for one, other in zip(speculative, cache_of(tiny, count), strict=True):
        assert one.any() and np.array_equal(one, other)


def slots(engine):
    order = engine._plan.buffers.order
    data = asyncio.run(engine.device.collect(engine.device.submit(0, 1, (order.buffer, 0, order.size))))
    return np.frombuffer(data, np.uint32).tolist()


def test_replies_depend_on_no_earlier_one(tiny, prompt, plain):
    """Requests of all kinds in turn: what one leaves behind (counts, lists, permutation) is nothing to the next."""
    ids = plain["greedy"]
    for mode, remembered in (("fixed:8", ids), ("loop", ()), ("fixed:32", ()), ("adaptive", ids), ("fixed:8", ids)):
        generate(tiny, prompt[::-1] * 2, mode=mode, max_tokens=5, sampling=SAMPLINGS["penalties"])
        reply = generate(tiny, prompt, mode=mode, max_tokens=12, remembered=remembered)
        assert reply.ids == ids[:12]
        if mode == "fixed:8":
            assert reply.records == foretold(prompt, ids[:12], ids, 8)


def test_stopping(tiny, prompt, plain):
    ids, pieces = plain["greedy"], []
    options = {"on_tokens": pieces.append, "stopped": lambda: len(pieces) == 2}
    reply = generate(tiny, prompt, mode="fixed:8", window=1, remembered=ids, **options)
    assert reply.finish_reason == "cancelled"
    assert reply.ids == ids[: len(reply.ids)] == sum(pieces, []) and reply.steps == 2


def test_memories_of_like_size_share_programs(tiny, prompt, plain, monkeypatch):
    ids, made, program = plain["greedy"], [], tiny.device.program
    monkeypatch.setattr(tiny.device, "program", lambda commands: made.append(1) or program(commands))
    for count in (4, 5, 17, len(ids)):
        before = len(made)
        assert generate(tiny, prompt, mode="fixed:4", window=3, remembered=ids[:count]).ids == ids
        assert count == 4 or len(made) == before


def test_forgetting_leaves_zeros(tiny, prompt, plain):
    generate(tiny, prompt, mode="fixed:8", remembered=plain["greedy"])
    tiny.forget()
    drafting = tiny._programs.drafting
    for binding in (drafting.memory, drafting.draft):
        ticket = tiny.device.submit(0, 1, (binding.buffer, 0, binding.size))
        assert not any(asyncio.run(tiny.device.collect(ticket)))
    assert generate(tiny, prompt, mode="fixed:8").ids == plain["greedy"]


@st.composite
def steps(draw):
    """(nodes, choices, width, length, limits, stops): a tree of few different tokens, most of them right."""
    width, count = draw(st.sampled_from(WIDTHS)), draw(st.integers(1, MAX_NODES))
    choices = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    nodes = [(draw(st.integers(0, 3)), 0, 0, 1)]
    for i in range(1, count):
        parent = draw(st.one_of(st.just(i - 1), st.integers(0, i - 1)))
        token = draw(st.one_of(st.just(choices[parent]), st.integers(0, 3)))
        nodes.append((token, parent, nodes[parent][2] + 1, nodes[parent][3] | 1 << i))
    length, room = draw(st.integers(0, 70)), st.integers(1, 12)
    limits = draw(room), length + 1 + draw(room)
    return nodes, choices, width, length, limits, draw(st.sampled_from([(), (), (3,), (2, 3)]))


def walked(nodes, choices, width, length, limits, stops):
    """The accepted path: node 0, then each time the first child that carries its parent's choice."""
    path = [0]
    while True:
        node = path[-1]
        full = len(path) == limits[0] or length + 1 + len(path) == limits[1]
        if choices[node] in stops or full or len(path) == LONGEST_PATH:
            return path
        fitting = (i for i in range(1, min(width, len(nodes))) if nodes[i][:2] == (choices[node], node))
        child = next(fitting, 0)
        if not child:
            return path
        path.append(child)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps())
def test_accept_commits_a_path_and_keeps_the_permutation(stage, step):
    nodes, choices, width, length, limits, stops = step
    s, b = stage(SOFTWARE), stage(SOFTWARE).buffers
    before = s.order().tolist()
    s.request(*limits, length + 1, stops)
    s.control(np.array(nodes), length, rest=(length + 1, 0, 0))
    s.write(b.logits, np.eye(s.decoder.vocabulary, dtype=np.float32)[[*choices, *[0] * (MAX_NODES - len(choices))]])
    dispatches = s.dispatches(width)
    s.run(dispatches["choose"] + dispatches["accept"])
    path, state, after = walked(*step), s.state(), s.read(b.order, np.uint32).tolist()
    emitted = [choices[node] for node in path]
    assert (state.tokens(0), state.records(0)) == (emitted, [(len(path), 0, width)])
    assert (state.length, state.context_length) == (length + len(path), length + 1 + len(path))
    assert s.read(b.context, np.uint32)[length + 1 : state.context_length].tolist() == emitted
    assert s.nodes().tolist() == [[emitted[-1], 0, 0, 1]]
    assert sorted(after) == list(range(b.slots))
    assert after[: state.length] == before[:length] + [before[length + node] for node in path]
    assert after[length + path[-1] + 1 :] == before[length + path[-1] + 1 :]
