"""Attention and its merge against their numpy twins, over chains, trees and chunk borders."""

from dataclasses import replace

import numpy as np
import pytest

from pyweb.kernels.tuning import GPU
from pyweb.plan.dispatch import Kernel
from tests.gpu.reference import (
    Activation,
    attention,
    chain,
    close,
    join_chunks,
    random_tree,
    visible_slots,
)
from tests.gpu.stage import CONTEXT

WIDTH = 32
GROUPED = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_size": 16, "feed_forward": 96, "rope_pairs": "halves"}
TOLERANCE = 2e-5  # of the largest value: WGSL's exp is exact to 3 + 2|x| ulp, and scores reach -20


def fill(stage, random, nodes, length):
    """Random queries and a random cache in shuffled slots: (q, keys, values) in float32, by position and node.

    Where nothing may be read there is not a number.
    """
    d, b = stage.decoder, stage.buffers
    stage.control(nodes, length)
    q = random.normal(0, 1.5, (WIDTH, d.heads, d.head_size)).astype(np.float32)
    cache = random.normal(0, 1, (2, d.kv_heads, b.slots, d.head_size)).astype(np.float16 if b.kv_f16 else np.float32)
    cache[:, :, length + len(nodes) :] = np.nan
    stage.write(b.q, q)
    slots = np.empty_like(cache)
    slots[:, :, stage.order()] = cache
    stage.write(b.kv[0], slots)
    return q[: len(nodes)], *cache.astype(np.float32)


def partial_shape(stage):
    d = stage.decoder
    chunks = -(-stage.buffers.slots // stage.tuning.chunk)
    return (WIDTH, d.heads, chunks, d.head_size + 4)


@pytest.mark.parametrize("kv_f16", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("sizes", [{}, GROUPED], ids=["3 heads on 1", "4 heads on 2"])
def test_attention(stage, tuning, sizes, kv_f16):
    s = stage(tuning, kv_f16=kv_f16, **sizes)
    random = np.random.default_rng(3)
    (dispatch,) = s.dispatches(WIDTH)["attention"]
    shape = partial_shape(s)
    for length in (0, 1, 20, 31, 32, 63, int(random.integers(CONTEXT)), CONTEXT):
        for nodes in (chain(WIDTH), chain(1), random_tree(random, s.decoder.vocabulary)):
            q, keys, values = fill(s, random, nodes, length)
            s.write(s.buffers.partial, np.full(shape, np.nan, np.float32))
            s.run([dispatch])
            partial = s.read(s.buffers.partial, shape=shape)
            slots = visible_slots(nodes, length)
            expected = attention(q, keys, values, slots)
            for t, seen in enumerate(slots):
                chunks = -(-len(seen) // s.tuning.chunk)
                close(join_chunks(partial[t, :, :chunks]), expected[t], np.abs(values[:, seen]).max(), TOLERANCE)
                assert np.isnan(partial[t, :, chunks:]).all()  # chunks beyond the node's position aren't written


@pytest.mark.parametrize("heads, head_size", [(3, 32), (7, 64), (7, 96), (4, 128), (9, 128)])
def test_threads_change_no_bit(stage, heads, head_size):
    s = stage(GPU, heads=heads, head_size=head_size)
    random = np.random.default_rng(5)
    (dispatch,) = s.dispatches(WIDTH)["attention"]
    kernel, shape = dispatch.kernel, partial_shape(s)
    fill(s, random, random_tree(random, s.decoder.vocabulary), 50)
    found = set()
    for threads in (64, 128, 256):
        s.write(s.buffers.partial, np.zeros(shape, np.float32))
        cut = Kernel.of(kernel.role, **dict(kernel.values) | {"THREADS": threads})
        s.run([replace(dispatch, kernel=cut)])
        found.add(s.read(s.buffers.partial, shape=shape).tobytes())
    assert len(found) == 1 and any(found.pop())


@pytest.mark.parametrize("sizes", [{}, GROUPED], ids=["96", "64"])
def test_attention_merge(stage, tuning, sizes):
    s = stage(tuning, **sizes)
    random = np.random.default_rng(4)
    shape = partial_shape(s)
    (dispatch,) = s.dispatches(WIDTH)["attention_merge"]
    blocks = s.decoder.heads * s.decoder.head_size // 32
    for length in (0, 31, 50, CONTEXT):
        nodes = random_tree(random, s.decoder.vocabulary)
        s.control(nodes, length)
        partial = random.normal(0, 4, shape).astype(np.float32)
        partial[..., -3] = random.uniform(1, 32, shape[:-1])
        chunks = (length + nodes[:, 2].astype(int)) // s.tuning.chunk + 1
        for t in range(WIDTH):
            partial[t, :, chunks[t] :] = np.nan
        s.write(s.buffers.partial, partial)
        s.run([dispatch])
        x = Activation.parse(s.read(s.buffers.x_attention, np.uint32, (WIDTH, blocks, 12)), blocks)
        expected = [join_chunks(partial[t, :, : chunks[t]]).ravel() for t in range(WIDTH)]
        x.assert_rounds(np.array(expected), tolerance=1e-5)
