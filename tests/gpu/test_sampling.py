"""Sampling kernels against their twin: penalties, cuts, draws; the same token at any width; frequencies."""

import asyncio
from functools import cache

import numpy as np
import pytest

from pyweb.errors import UsageError
from pyweb.kernels.tuning import SOFTWARE
from pyweb.plan.buffers import allocate
from pyweb.plan.control import MAX_NODES, STATE, request_bytes
from pyweb.plan.dispatch import Assembler
from pyweb.plan.sampling import MAX_BIASES, Sampling, SamplingPlan
from tests.gpu import sampling_reference as twin
from tests.gpu.reference import chain, random_tree
from tests.gpu.stage import CONTEXT, decoder

PENALTIES = {"repetition_penalty": 1.25, "presence_penalty": 0.5, "frequency_penalty": 0.25}


class Sampler:
    """A sampling plan on the device, run on logits, nodes and contexts of the test's choice."""

    def __init__(self, device, tuning, vocabulary):
        model = decoder(vocabulary=vocabulary)
        self.device, self.vocabulary = device, vocabulary
        self.buffers = asyncio.run(allocate(device, model, tuning, CONTEXT, True))
        self.plan = asyncio.run(SamplingPlan.allocate(device, model, tuning, self.buffers))
        self.assembler = Assembler(device)
        self._programs = {}

    def submit(self, dispatches):
        key = tuple(dispatches)
        if key not in self._programs:
            self._programs[key] = asyncio.run(self.assembler.program(dispatches))
        self.device.submit(self._programs[key])

    def read(self, binding, kind, count):
        size = count * np.dtype(kind).itemsize
        ticket = self.device.submit(0, 1, (binding.buffer, 0, size))
        return np.frombuffer(asyncio.run(self.device.collect(ticket)), kind)

    def begin(self, sampling, context=(), prompt_length=0):
        for write in self.plan.writes(sampling):
            self.device.write(*write)
        if dispatches := self.plan.begin(sampling):
            self.submit(dispatches)
        self.device.write(self.buffers.context.buffer, 0, np.array(context, np.uint32).tobytes() or bytes(4))
        self.device.write(self.buffers.request.buffer, 0, request_bytes(1, 1, prompt_length, ()))

    def logits(self, rows):
        self.device.write(self.buffers.logits.buffer, 0, np.ascontiguousarray(rows, np.float32).tobytes())

    def control(self, nodes, length, context_length, flags=0):
        self.device.write(self.buffers.control.buffer, 0, np.ascontiguousarray(nodes, np.uint32).tobytes())
        state = np.array([length, len(nodes), context_length, flags, 0, 0, 0, 0], np.uint32)
        self.device.write(self.buffers.control.buffer, STATE, state.tobytes())

    def step(self, sampling, nodes, length, *, width=None, context_length=None, flags=0):
        """The nodes' choices."""
        self.control(nodes, length, length + 1 if context_length is None else context_length, flags)
        self.submit(self.plan.dispatches(width or len(nodes), sampling.stages))
        segments = self.plan.segments
        best = self.read(self.buffers.best, np.uint32, len(nodes) * segments * 2).reshape(-1, segments, 2)
        return [int(max(row.tolist(), key=lambda entry: (entry[0], -entry[1]))[1]) for row in best]

    def cuts(self, rows, sampling):
        """What top-k and top-p leave in, by row, from the cuts on the device."""
        cuts = self.read(self.plan.cut, np.uint32, len(rows))
        return [twin.fixed(twin.distances(row, sampling)) <= cut for row, cut in zip(rows, cuts, strict=True)]


@pytest.fixture(scope="session")
def sampler(device):
    """sampler(tuning, vocabulary)"""
    return cache(lambda tuning, vocabulary: Sampler(device, tuning, vocabulary))


@pytest.fixture
def random():
    return np.random.default_rng(5)


def rows_of(random, count, vocabulary, spread=3.0):
    return random.normal(0, spread, (count, vocabulary)).astype(np.float32)


# --- stages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary", [101, 1000])
def test_penalties_count_prompt_reply_and_ancestors(sampler, tuning, random, vocabulary):
    """Three steps of random trees; the context grows between them. Few tokens, so that they repeat."""
    s = sampler(tuning, vocabulary)
    bias = ((3, 1.5), (vocabulary - 1, -2.25), (50, float("-inf")))
    sampling = Sampling(**PENALTIES, logit_bias=bias)
    context = random.integers(0, 20, 60).tolist()
    prompt = 31
    s.begin(sampling, context, prompt)
    for length in (prompt - 1, prompt, 52):
        nodes = random_tree(random, 20, MAX_NODES)
        nodes[0][0] = context[length]
        rows = rows_of(random, MAX_NODES, vocabulary)
        s.logits(rows)
        choices = s.step(sampling, nodes, length)
        adjusted = s.read(s.buffers.logits, np.float32, rows.size).reshape(rows.shape)
        for t, node in enumerate(nodes):
            ancestors = [int(nodes[i][0]) for i in range(1, MAX_NODES) if int(node[3]) >> i & 1]
            expected = twin.adjust(rows[t], sampling, context[:prompt], context[prompt : length + 1] + ancestors)
            assert np.array_equal(adjusted[t], expected)
            assert choices[t] == expected.argmax()


def test_a_new_request_starts_from_nothing(sampler, tuning, random):
    s = sampler(tuning, 101)
    rows = rows_of(random, 1, 101)
    s.begin(Sampling(**PENALTIES, logit_bias=((7, 5.0),)), [1, 2, 3, 4], 2)
    s.logits(rows)
    s.step(Sampling(**PENALTIES), chain(1), 3)
    fresh = Sampling(presence_penalty=3.0, logit_bias=((8, 0.5),))
    s.begin(fresh, [5, 6, 9], 2)
    s.logits(rows)
    s.step(fresh, chain(1), 2)
    assert np.array_equal(s.read(s.buffers.logits, np.float32, 101), twin.adjust(rows[0], fresh, [5, 6], [9]))


CUTS = [
    {"top_k": 2},
    {"top_k": 40},
    {"top_k": 100000},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"top_p": 0.9999},
    {"top_p": 1e-9},
    {"top_k": 30, "top_p": 0.7},
]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("options", CUTS, ids=str)
def test_cuts(sampler, tuning, random, options, temperature):
    """Kept sets, on spread logits and on logits with plenty of ties, against the twin; without ties, the textbook's."""
    s, sampling = sampler(tuning, 1000), Sampling(temperature=temperature, **options)
    rows = np.concatenate([rows_of(random, 3, 1000, spread) for spread in (0.01, 1, 8)])
    rows = np.concatenate([rows, random.integers(-6, 7, (2, 1000)), np.zeros((1, 1000))]).astype(np.float32)
    s.begin(sampling)
    s.logits(rows)
    s.step(sampling, chain(len(rows)), 4)
    for number, (row, found) in enumerate(zip(rows, s.cuts(rows, sampling), strict=True)):
        expected = twin.kept(twin.distances(row, sampling), sampling)
        assert np.array_equal(found, expected)
        if 3 <= number < 6:
            assert set(np.flatnonzero(found)) == twin.textbook_kept(row, sampling)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 3.0, "seed": (1 << 64) - 1},
        {"min_p": 0.2},
        {"min_p": 1.0},
        {"top_k": 1},
        {"top_k": 5},
        {"top_p": 0.6},
        {"top_k": 50, "top_p": 0.95, "min_p": 0.02, **PENALTIES, "logit_bias": ((3, 4.0), (4, float("-inf")))},
    ],
    ids=str,
)
@pytest.mark.parametrize("vocabulary", [101, 1000])
def test_draws(sampler, tuning, random, vocabulary, options):
    """The twin's tokens, and within the options' reach."""
    s, sampling = sampler(tuning, vocabulary), Sampling(**({"temperature": 1.0, "seed": 77} | options))
    context = random.integers(0, vocabulary, 41).tolist()
    rows = rows_of(random, MAX_NODES, vocabulary)
    nodes = chain(MAX_NODES, [context[-1], *random.integers(0, vocabulary, MAX_NODES - 1)])
    s.begin(sampling, context, 30)
    s.logits(rows)
    choices = s.step(sampling, nodes, 40)
    for t, choice in enumerate(choices):
        adjusted = twin.adjust(rows[t], sampling, context[:30], context[30:] + nodes[1 : t + 1, 0].tolist())
        assert choice == twin.choose(adjusted, sampling, 40 + t + 1)
        if sampling.min_p and sampling.stages.draw:
            assert twin.distances(adjusted, sampling)[choice] <= -np.log(sampling.min_p) + 1e-6
    assert 4 not in choices or not sampling.logit_bias


def test_equal_tokens_are_all_drawn_and_the_first_one_is_greedy(sampler, tuning):
    s, rows = sampler(tuning, 101), np.zeros((MAX_NODES, 101))
    for sampling, several in ((Sampling(temperature=1.0, top_k=3), True), (Sampling(temperature=1.0, top_k=1), False)):
        s.begin(sampling)
        s.logits(rows)
        assert (len(set(s.step(sampling, chain(MAX_NODES), 4))) > 10) is several
    assert s.step(sampling, chain(MAX_NODES), 4) == [0] * MAX_NODES


def test_a_finished_reply_is_left_alone(sampler, tuning, random):
    s, sampling = sampler(tuning, 101), Sampling(temperature=1.0, top_p=0.5, **PENALTIES)
    rows = rows_of(random, 4, 101)
    s.begin(sampling, [1, 2, 3], 1)
    s.logits(rows)
    before = s.read(s.buffers.best, np.uint32, 8).tolist()
    s.step(sampling, chain(4), 4, flags=1)
    assert np.array_equal(s.read(s.buffers.logits, np.float32, rows.size), rows.ravel())
    assert s.read(s.buffers.best, np.uint32, 8).tolist() == before


# --- one token, any width ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize(
    "options",
    [{}, {"top_k": 20, "top_p": 0.9, "min_p": 0.01}, PENALTIES, {"temperature": 0.0, **PENALTIES}],
    ids=["plain", "cut", "penalties", "argmax"],
)
def test_a_node_chooses_what_plain_decoding_would(sampler, tuning, random, width, options):
    """Each node of a random tree again as node 0 of a step of its own, its ancestors in the context."""
    s, sampling = sampler(tuning, 1000), Sampling(**({"temperature": 0.8, "seed": 1 << 40} | options))
    context, prompt, length = random.integers(0, 12, 38).tolist(), 20, 37
    nodes = random_tree(random, 12, width)
    nodes[0][0] = context[-1]
    rows = rows_of(random, width, 1000)
    s.begin(sampling, context, prompt)
    s.logits(rows)
    together = s.step(sampling, nodes, length)
    for t, node in enumerate(nodes[:12]):
        ancestors = [int(nodes[i][0]) for i in range(1, width) if int(node[3]) >> i & 1]
        s.begin(sampling, context + ancestors, prompt)
        s.logits(rows[t : t + 1])
        alone = s.step(sampling, chain(1, [int(node[0])]), length + len(ancestors))
        assert alone == [together[t]]


def test_a_large_vocabulary(sampler, tuning, random):
    s = sampler(tuning, 49152)
    rows = rows_of(random, 2, 49152)
    for options in ({}, {"top_k": 64, "top_p": 0.9}, {"top_p": 0.99, "temperature": 1.3, "seed": 4}):
        sampling = Sampling(**({"temperature": 1.0} | options))
        s.begin(sampling)
        s.logits(rows)
        choices = s.step(sampling, chain(2), 4)
        assert choices == [twin.choose(row, sampling, 5 + t) for t, row in enumerate(rows)]
        if sampling.stages.cut:
            for row, found in zip(rows, s.cuts(rows, sampling), strict=True):
                assert np.array_equal(found, twin.kept(twin.distances(row, sampling), sampling))


# --- frequencies: the draws above equal the twin's under both tunings, so one will do -------------------------------


def frequencies(s, sampling, rounds):
    """Draws of 32 nodes with equal logits, a position each, over `rounds` seeds."""
    out = []
    for seed in range(rounds):
        with_seed = Sampling(**{**vars(sampling), "seed": seed * 0x9E3779B97F4A7C15 % (1 << 64)})
        s.begin(with_seed)
        out += s.step(with_seed, chain(MAX_NODES), 10)
    return np.array(out)


def assert_fits(counts, probabilities):
    """Chi-square at 1 in 1,000, by Wilson and Hilferty's normal approximation. Seeds are fixed: it can't flake."""
    expected = counts.sum() * np.asarray(probabilities, np.float64)
    assert expected.min() >= 5
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@pytest.mark.parametrize("options", [{}, {"temperature": 2.0}, {"top_k": 8}], ids=str)
def test_frequencies_match_the_softmax(sampler, random, options):
    s, sampling = sampler(SOFTWARE, 101), Sampling(**({"temperature": 1.0} | options))
    row = rows_of(random, 1, 101, 1.5)[0]
    s.logits(np.tile(row, (MAX_NODES, 1)))
    drawn = np.bincount(frequencies(s, sampling, 150), minlength=101)
    inside = twin.kept(twin.distances(row, sampling), sampling)
    assert not drawn[~inside].any()
    p = softmax(row[inside].astype(np.float64) / sampling.temperature)
    rank = np.argsort(-p)
    groups = np.minimum(np.cumsum(p[rank]) * 30, 29).astype(int)  # rare tokens together
    _, groups = np.unique(groups, return_inverse=True)
    assert_fits(np.bincount(groups, drawn[inside][rank]), np.bincount(groups, p[rank]))


def test_frequencies_of_a_heavy_tail(sampler):
    """One token of a half, and 16,383 that share the other half: the tail comes as often, and evenly."""
    s = sampler(SOFTWARE, 16384)
    row = np.zeros(16384)
    row[17] = np.log(16383)
    s.logits(np.tile(row, (MAX_NODES, 1)))
    drawn = frequencies(s, Sampling(temperature=1.0), 30)
    assert_fits(np.bincount(drawn == 17, minlength=2), [0.5, 0.5])
    tail = drawn[drawn != 17]
    assert_fits(np.bincount(tail * 32 // 16384, minlength=32), np.full(32, 1 / 32))
    assert len(set(tail.tolist())) > 0.95 * len(tail)


# --- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": 0.0001},
        {"temperature": "hot"},
        {"top_k": -1},
        {"top_k": 2.5},
        {"top_k": True},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"repetition_penalty": 0.0},
        {"presence_penalty": float("inf")},
        {"frequency_penalty": -101},
        {"seed": 1 << 64},
        {"seed": -1},
        {"logit_bias": ((1, 2.0), (1, 3.0))},
        {"logit_bias": ((-1, 2.0),)},
        {"logit_bias": ((1, float("nan")),)},
        {"logit_bias": tuple((token, 0.0) for token in range(MAX_BIASES + 1))},
    ],
    ids=lambda options: str(options)[:40],
)
def test_wrong_options(options):
    with pytest.raises(UsageError, match=next(iter(options)).split("_")[0] + "|bias"):
        Sampling(**options)


def test_a_bias_for_no_token(sampler, tuning):
    with pytest.raises(UsageError, match="101"):
        sampler(tuning, 101).plan.writes(Sampling(logit_bias=((101, 1.0),)))


def test_greedy_is_the_default():
    assert Sampling().greedy and Sampling(temperature=0.7, top_k=1).greedy and Sampling(top_p=0.5, seed=3).greedy
    assert not Sampling(temperature=0.7).greedy and not Sampling(presence_penalty=0.1).greedy
    assert not Sampling(logit_bias=((1, 1.0),)).greedy
