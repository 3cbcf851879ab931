"""Whole tiny models: against PyTorch, N nodes a step against one, trees against a chain."""

import asyncio
import math
from dataclasses import replace

import gguf
import numpy as np
import pytest

from pyweb.engine import Pacer
from pyweb.engine.exactness import Exactness
from pyweb.engine.programs import Programs
from pyweb.kernels.tuning import SOFTWARE, WIDTHS
from pyweb.plan.control import MAX_NODES, READBACK_BYTES, STATE, parse_state
from pyweb.plan.dispatch import Assembler
from pyweb.plan.weights import plan_weights
from pyweb.weights import read_gguf
from pyweb.weights.layout import dequantize
from tests.gpu.conftest import FIXTURES
from tests.gpu.dawn import FileSource

NAMES = ["tied", "untied", "qwen2_tied", "qwen2_untied"]


def logits_of(engine, ids, width):
    rows, _ = asyncio.run(engine.trace(ids.tolist(), width))
    return np.array([np.frombuffer(row, np.float32) for row in rows])


def likelihoods(logits, ids):
    exact = logits.astype(np.float64)
    total = np.log(np.exp(exact).sum(1))
    return total - exact[np.arange(len(exact)), ids[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_weights_on_the_gpu_are_those_of_the_file(engine, device, name):
    """Streamed, repacked and laid one below the other: what the `gguf` package dequantizes, value for value."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(FIXTURES / f"tiny_{name}.gguf").tensors}
    loaded = engine(name, SOFTWARE)

    def read(binding, kind):
        ticket = device.submit(0, 1, (binding.buffer, 0, binding.size))
        return np.frombuffer(asyncio.run(device.collect(ticket)), kind)

    decoder, weights = loaded.decoder, loaded._plan.weights
    for matrix in (decoder.embedding, decoder.head, *(m for layer in decoder.matrices for m in layer.values())):
        packed = weights.matrices[matrix.name]
        (whole,) = packed.slices
        codes, scales = read(whole.codes, np.uint32), read(whole.scales, np.uint32)
        found = dequantize(packed.layout, codes, scales, packed.columns)
        parts = [gguf.quants.dequantize(tensors[part].data, tensors[part].tensor_type) for part in matrix.sources]
        assert np.array_equal(found, np.concatenate(parts))
    for vector in (decoder.final_norm, *(v for layer in decoder.vectors for v in layer.values())):
        parts = [tensors[part].data for part in vector.sources]
        assert np.array_equal(read(weights.vectors[vector.name], np.float32), np.concatenate(parts))


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_pytorch(engine, reference, tuning, name):
    """With keys and values in f32 nothing but the order of additions differs; logits reach 10.

    A model of this size turns a code in every second draw of random weights, which moves some logits by 0.1: the seeds
    in make_tiny.py are of those that don't.
    """
    expected = reference(name)
    logits = logits_of(engine(name, tuning, kv_f16=False), expected["ids"], 2)
    assert np.abs(logits - expected["f32"]).max() < 1e-4
    found, wanted = (likelihoods(rows, expected["ids"]).mean() for rows in (logits, expected["f32"]))
    assert math.exp(found) == pytest.approx(math.exp(wanted), rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_logits_with_f16_keys_and_values(engine, reference, tuning, name):
    """A key that rounds the other way in f16 turns some 8-bit codes by one, and each of them is 1/127 of its block."""
    expected = reference(name)
    error = np.abs(logits_of(engine(name, tuning), expected["ids"], 2) - expected["f16"])
    assert error.max() < 0.2
    assert error.mean() < 0.03


@pytest.mark.parametrize("kv_f16", [True, False], ids=["f16", "f32"])
def test_logits_are_near_those_without_rounding(engine, reference, kv_f16):
    expected = reference("tied")
    error = np.abs(logits_of(engine("tied", SOFTWARE, kv_f16), expected["ids"], 2) - expected["exact"])
    assert error.max() < 0.8
    assert error.mean() < 0.06


def test_perplexity_equals_pytorch(engine, reference):
    expected = reference("tied")
    found = asyncio.run(engine("tied", SOFTWARE, kv_f16=False).perplexity_sum(expected["ids"].tolist()))
    assert found == pytest.approx(likelihoods(expected["f32"], expected["ids"]).sum(), rel=1e-5)


def check_widths(loaded, ids):
    single = asyncio.run(loaded.trace(ids, 1))
    assert len(single[0]) == len(ids) - 1
    for width in WIDTHS[1:]:
        assert asyncio.run(loaded.trace(ids, width)) == single, f"width {width}"


def test_any_width_gives_the_bits_of_width_1(engine, reference, tuning):
    """Logits and the KV cache: so a prompt prefilled in chunks of any width is the same prompt."""
    check_widths(engine("tied", tuning), reference("tied")["ids"].tolist())


def test_any_width_of_mixed_weights(engine, reference):
    check_widths(engine("qwen2_tied", SOFTWARE), reference("qwen2_tied")["ids"].tolist())


class Small:
    """A device that binds little at a time, so that matrices lie in several ranges of rows."""

    def __init__(self, device, binding):
        self._device = device
        self.limits = device.limits | {"maxBufferSize": binding}

    def __getattr__(self, name):
        return getattr(self._device, name)


def test_ranges_of_rows_change_no_bit(engine, device, reference, tuning):
    ids, whole = reference("qwen2_untied")["ids"].tolist()[:10], engine("qwen2_untied", tuning)

    async def cut():
        source = FileSource(device, FIXTURES / "tiny_qwen2_untied.gguf")
        gguf = await read_gguf(source.read, source.size)
        small = Small(device, 14000)
        assembler = Assembler(small)
        weights = await plan_weights(small, assembler, gguf, whole.decoder)
        assert {len(matrix.slices) for matrix in weights.matrices.values()} == {1, 2}
        assert len(weights.matrices["embedding"].slices) == 2 == len(weights.matrices["blk.0.gate_up"].slices)
        await device.load(source, weights.steps, lambda done, total: None)
        plan = replace(whole._plan, weights=weights)
        return await Exactness(device, plan, Programs(device, assembler, plan), whole._begin_trace).trace(ids, 2)

    assert asyncio.run(cut()) == asyncio.run(whole.trace(ids, 2))


def tree(random, vocabulary, path, count):
    """A draft: the tokens of `path` behind node 0, drowned in wrong branches; node 0's token is already there."""
    nodes, right = [(0, 0, 0, 1)], 0
    for i in range(1, count):
        depth = nodes[right][2]
        if depth + 1 < len(path) and random.random() < 0.5:
            parent, token, right = right, path[depth + 1], i
        else:
            parent, token = int(random.integers(i)), int(random.integers(vocabulary))
        nodes.append((token, parent, nodes[parent][2] + 1, nodes[parent][3] | 1 << i))
    return nodes


async def speculate(engine, prompt, draft, width, *, max_tokens, stops=()):
    """Decodes in steps of `width` nodes from trees of the host's, drawn by `draft(ids so far)`; the last state."""
    device, buffers, plan = engine.device, engine._plan.buffers, engine._plan
    program = await Assembler(device).program(
        [*plan.forward(width, plan.chunks(buffers.slots)), *plan.head(width), *plan.choose(width)]
    )
    engine._begin(prompt, max_tokens, stops)
    await engine._prefill(prompt, MAX_NODES, lambda done, total: None, lambda: False, Pacer())
    ids, steps = [], []
    while True:
        nodes = np.array(draft(ids), np.uint32)
        nodes[0, 0] = ([*prompt, *ids])[-1]
        device.write(buffers.control.buffer, 0, nodes.tobytes())
        device.write(buffers.control.buffer, STATE + 4, len(nodes).to_bytes(4, "little"))
        ticket = device.submit(program, 1, (buffers.control.buffer, STATE, READBACK_BYTES))
        state = parse_state(await device.collect(ticket))
        steps.append(state.emitted - len(ids))
        ids = state.tokens(0)
        if state.flags:
            return ids, steps


@pytest.mark.parametrize("width", [2, 8, 32])
def test_trees_give_the_ids_of_single_steps(engine, reference, tuning, width):
    loaded, random = engine("tied", tuning), np.random.default_rng(width)
    prompt = reference("tied")["ids"][:30].tolist()
    before = asyncio.run(loaded.trace(prompt, 8))[0]
    plain = asyncio.run(loaded.generate(prompt, max_tokens=40)).ids

    def draft(ids):
        return tree(random, loaded.decoder.vocabulary, [0, *plain[len(ids) :]], width)

    ids, steps = asyncio.run(speculate(loaded, prompt, draft, width, max_tokens=40))
    assert ids == plain
    assert len(steps) < len(plain) and max(steps) > 1
    # the cache's slots are shuffled now, and nobody notices
    assert asyncio.run(loaded.generate(prompt, max_tokens=40)).ids == plain
    assert asyncio.run(loaded.trace(prompt, 8))[0] == before


@pytest.mark.parametrize("prompt_length, limit", [(30, 7), (90, 40)], ids=["limit", "full context"])
def test_a_tree_ends_where_single_steps_end(engine, reference, prompt_length, limit):
    loaded, random = engine("tied", SOFTWARE), np.random.default_rng(3)
    prompt = (reference("tied")["ids"].tolist() * 3)[:prompt_length]
    plain = asyncio.run(loaded.generate(prompt, max_tokens=20)).ids

    def draft(ids):
        return tree(random, loaded.decoder.vocabulary, [0, *plain[len(ids) :], 1, 2, 3], 8)

    ids, _ = asyncio.run(speculate(loaded, prompt, draft, 8, max_tokens=limit))
    assert ids == plain[: min(limit, loaded.context - prompt_length)]
