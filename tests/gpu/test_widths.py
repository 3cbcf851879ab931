"""The bits of N nodes in one step equal the bits of N single steps, kernel by kernel."""

from dataclasses import replace

import numpy as np
import pytest

from pyweb.kernels.tuning import WIDTHS
from pyweb.plan.control import MAX_NODES
from pyweb.weights.layout import Q8, Q8_ALL, Q8_HALVES, Q8_OFFSET
from tests.gpu.reference import chain, quantize, random_tree

LENGTH = 29  # the tree crosses the border of the first chunk
WIDER = [width for width in WIDTHS if width > 1]


def activations(random, columns):
    x = quantize(random.normal(0, 3, (MAX_NODES, columns)))
    return replace(x, squares=random.uniform(1, 300, x.scales.shape).astype(np.float32)).words()


def floats(random, columns):
    return random.normal(0, 3, (MAX_NODES, columns)).astype(np.float32)


class Case:
    """Inputs of 32 nodes for one kernel, as (binding, array), and its outputs as (binding, words of a node)."""

    def __init__(self, s, name):
        b, d, random = s.buffers, s.decoder, np.random.default_rng(5)
        hidden, attention, up = d.hidden, d.heads * d.head_size, d.feed_forward
        chunks = -(-b.slots // s.tuning.chunk)
        residual = floats(random, hidden)
        joined = floats(random, d.heads * chunks * (d.head_size + 4)).reshape(MAX_NODES, d.heads, chunks, -1)
        joined[..., -3] = np.abs(joined[..., -3]) + 1
        q, logits = floats(random, attention) / 2, floats(random, d.vocabulary)
        x = {columns: activations(random, columns) for columns in (hidden, attention, up)}
        next_x = [] if s.tuning.barrier_free else [(b.x_hidden, hidden // 32 * 12)]
        self.inputs, *out = {
            "embed": ([], b.hidden, hidden),
            "attn_norm": ([(b.hidden, residual)], b.x_hidden, hidden // 32 * 12),
            "qkv": ([(b.x_hidden, x[hidden])], b.q, attention),
            "attention": ([(b.q, q)], b.partial, joined[0].size),
            "attention_merge": ([(b.partial, joined)], b.x_attention, attention // 32 * 12),
            "output": ([(b.x_attention, x[attention]), (b.hidden, residual)], b.hidden, hidden),
            "gate_up": ([(b.x_hidden, x[hidden])], b.x_feed_forward, up // 32 * 12),
            "down": ([(b.x_feed_forward, x[up]), (b.hidden, residual)], b.hidden, hidden),
            "head": ([(b.x_hidden, x[hidden])], b.logits, d.vocabulary),
            "choose": ([(b.logits, logits)], b.best, -(-d.vocabulary // s.tuning.choose_segment) * 2),
        }[name]
        # what also leaves the activation behind the next norm
        self.outputs = [tuple(out), *(next_x if name in ("embed", "output", "down") else [])]


def step(s, name, case, nodes, length, width, first=0):
    """Runs the kernel at `width` over `nodes`, whose inputs start at node `first`; the rows it wrote."""
    s.control(nodes, length)
    for binding, words in case.outputs:
        s.write(binding, np.zeros(MAX_NODES * words, np.uint32))
    for binding, array in case.inputs:
        s.write(binding, array[first : first + len(nodes)])
    s.run(s.dispatches(width)[name])
    rows = np.hstack([s.read(binding, np.uint32, (MAX_NODES, words)) for binding, words in case.outputs])
    assert not rows[len(nodes) :].any()  # nodes that aren't valid are left alone
    return rows[: len(nodes)]


def alone(node):
    """The node as the only one of a step."""
    return np.array([[node[0], 0, 0, 1]], np.uint32)


def check(s, name, nodes):
    case = Case(s, name)
    single = [step(s, name, case, alone(node), LENGTH + int(node[2]), 1, i)[0] for i, node in enumerate(nodes)]
    assert np.array(single).any()
    for width in WIDER:
        for valid in (width, width - 1):
            rows = step(s, name, case, nodes[:valid], LENGTH, width)
            assert np.array_equal(rows, single[:valid]), f"{name} at width {width}"


@pytest.fixture
def nodes():
    return random_tree(np.random.default_rng(6), 227)


PARTS = ["embed", "attn_norm", "attention_merge", "output", "gate_up", "down", "choose"]


@pytest.mark.parametrize("name", PARTS)
def test_kernel(stage, tuning, nodes, name):
    if name == "attn_norm" and not tuning.barrier_free:
        pytest.skip("the kernels before and behind do the norm")
    check(stage(tuning), name, nodes)


@pytest.mark.parametrize("kind", [Q8, Q8_OFFSET, Q8_HALVES, Q8_ALL], ids=str)
@pytest.mark.parametrize("name", ["embed", "head"])
def test_kernel_of_an_8_bit_matrix(stage, tuning, nodes, name, kind):
    check(stage(tuning, kind), name, nodes)


def test_qkv(stage, tuning, nodes):
    """Queries, and keys and values wherever they were written."""
    s = stage(tuning)
    case, d, order = Case(s, "qkv"), s.decoder, s.order()
    shape = (2, d.kv_heads, s.buffers.slots, d.head_size)

    def written(width, nodes, length, first=0):
        s.write(s.buffers.kv[0], np.zeros(shape, np.uint16))
        queries = step(s, "qkv", case, nodes, length, width, first)
        cache = s.read(s.buffers.kv[0], np.uint16, shape)
        own = cache[:, :, order[length : length + len(nodes)]]
        assert np.count_nonzero(cache) == np.count_nonzero(own) > 0
        return queries, own

    single = [written(1, alone(node), LENGTH + int(node[2]), i) for i, node in enumerate(nodes)]
    for width in WIDER:
        queries, cache = written(width, nodes[:width], LENGTH)
        for i in range(width):
            assert np.array_equal(queries[i], single[i][0][0])
            assert np.array_equal(cache[:, :, i], single[i][1][:, :, 0])


@pytest.mark.parametrize("kv_f16", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("shape", ["tree", "chain"])
@pytest.mark.parametrize("sizes", [{}, {"heads": 4, "head_size": 128}], ids=["32", "128"])
def test_attention(stage, tuning, nodes, shape, kv_f16, sizes):
    """A node's single step finds its ancestors where acceptance would have put them: at their logical positions."""
    s = stage(tuning, kv_f16=kv_f16, **sizes)
    if shape == "chain":
        nodes = chain(MAX_NODES)
    case, d, order = Case(s, "attention"), s.decoder, s.order()
    kind = np.float16 if kv_f16 else np.float32
    cache = np.random.default_rng(8).normal(0, 1, (2, d.kv_heads, s.buffers.slots, d.head_size)).astype(kind)

    def fill(by_position):
        slots = np.empty_like(by_position)
        slots[:, :, order] = by_position
        s.write(s.buffers.kv[0], slots)

    single = []
    for i, node in enumerate(nodes):
        path = [j for j in range(i + 1) if int(node[3]) >> j & 1]
        committed = cache.copy()
        committed[:, :, LENGTH : LENGTH + len(path)] = cache[:, :, [LENGTH + j for j in path]]
        fill(committed)
        single.append(step(s, "attention", case, alone(node), LENGTH + int(node[2]), 1, i)[0])
    fill(cache)
    for width in WIDER:
        assert np.array_equal(step(s, "attention", case, nodes[:width], LENGTH, width), single[:width])


def test_likelihood(stage, tuning):
    s, random = stage(tuning), np.random.default_rng(9)
    b, logits = s.buffers, floats(random, s.decoder.vocabulary)
    s.write(b.context, random.integers(0, s.decoder.vocabulary, b.slots, np.uint32))

    def likelihoods(width, nodes, length, first):
        s.control(nodes, length)
        s.write(b.logits, logits[first : first + len(nodes)])
        s.run(s.dispatches(width)["nll"])
        return s.read(b.nll, np.uint32)[length : length + len(nodes)].tolist()

    single = [likelihoods(1, chain(1), LENGTH + i, i)[0] for i in range(MAX_NODES)]
    for width in WIDER:
        assert likelihoods(width, chain(width), LENGTH, 0) == single[:width]
