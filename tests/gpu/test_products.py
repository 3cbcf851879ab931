"""Embedding, norms and matrix products against their numpy twins."""

from dataclasses import replace

import gguf
import numpy as np
import pytest

from pyweb.kernels.tuning import SOFTWARE
from pyweb.plan.dispatch import Dispatch, Kernel
from pyweb.weights import layout
from pyweb.weights.layout import LAYOUT_OF, Q4, Q8, Q8_ALL, Q8_HALVES, Q8_OFFSET, common_layout
from tests.gpu.reference import Activation, close, quantize, random_tree, rms_norm, rope, silu

SUM = 1e-6  # of the summed magnitudes: a float32 sum of up to 65 blocks against a float64 one
WIDTH = 8
TILE = 2  # nodes of a product: the kernels of wider steps compile for seconds, and must equal these (test_widths.py)
LENGTH = 37
GROUPED = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_size": 16, "feed_forward": 96}
GROUPED |= {"rope_pairs": "halves", "bias": True}
LONG = {"hidden": 2080, "heads": 1, "feed_forward": 32}  # more words than a workgroup has threads
WIDE = {"hidden": 32, "heads": 26, "kv_heads": 2, "feed_forward": 2080}  # rows of 26 and 65 blocks: 16 and 32 lanes


@pytest.fixture(params=[Q4, Q8, Q8_OFFSET, Q8_HALVES, Q8_ALL], ids=str)
def kind(request):
    return request.param


@pytest.fixture
def random():
    return np.random.default_rng(11)


def activation(random, tokens, columns):
    """Quantized, with sums of squares as the kernel before leaves them where it doesn't divide by their mean's root."""
    x = quantize(random.normal(0, 3, (tokens, columns)))
    return replace(x, squares=random.uniform(1, 300, x.scales.shape).astype(np.float32))


def normed(stage, x):
    """The values that a product behind a norm computes with."""
    if stage.tuning.barrier_free:
        return x.values()
    mean = x.squares.astype(np.float64).sum(-1, keepdims=True) / stage.decoder.hidden
    return x.values() / np.sqrt(mean + stage.decoder.norm_eps)


def check_next(stage, hidden, norm):
    """The activation that a kernel leaves with `hidden` where it is the next norm's half."""
    if stage.tuning.barrier_free:
        return
    blocks = stage.decoder.hidden // 32
    x = Activation.parse(stage.read(stage.buffers.x_hidden, np.uint32, (len(hidden), blocks, 12)), blocks)
    x.assert_rounds(hidden.astype(np.float64) * stage.vectors[norm])
    squares = (hidden.astype(np.float64) ** 2).reshape(len(hidden), blocks, 32).sum(-1)
    np.testing.assert_allclose(x.squares, squares, rtol=1e-6)


def magnitude(x, weights):
    """Sum of |x| * |w|, and of what the offset adds and takes away again."""
    return np.abs(x.values()) @ np.abs(weights).T + np.abs(x.values()).sum(-1, keepdims=True) * np.abs(weights).max()


def start(stage, random, width=WIDTH):
    nodes = random_tree(random, stage.decoder.vocabulary, width)
    stage.control(nodes, LENGTH)
    return nodes


def test_embed(stage, tuning, kind, random):
    s = stage(tuning, kind)
    nodes = start(s, random)
    s.run(s.dispatches(WIDTH)["embed"])
    expected = s.matrices["embedding"][nodes[:, 0]]
    hidden = s.read(s.buffers.hidden, shape=expected.shape)
    close(hidden, expected, np.abs(expected) + 2, 1e-7)
    check_next(s, hidden, "attn_norm")


@pytest.mark.parametrize("sizes", [{}, WIDE, LONG], ids=["96", "32", "2080"])
def test_norm_quantize(stage, sizes, random):
    s = stage(SOFTWARE, **sizes)
    start(s, random)
    hidden = random.normal(0, 2, (WIDTH, s.decoder.hidden)).astype(np.float32)
    hidden[1, 32:64] = 0
    hidden[2] = 0
    s.write(s.buffers.hidden, hidden)
    s.run(s.dispatches(WIDTH)["attn_norm"])
    blocks = s.decoder.hidden // 32
    x = Activation.parse(s.read(s.buffers.x_hidden, np.uint32, (WIDTH, blocks, 12)), blocks)
    x.assert_rounds(rms_norm(hidden, s.vectors["attn_norm"], s.decoder.norm_eps))


@pytest.mark.parametrize("sizes, name", [({}, "output"), ({}, "down"), (WIDE, "output"), (WIDE, "down")])
def test_products_are_added_to_the_residual(stage, tuning, kind, sizes, name, random):
    s = stage(tuning, kind, **sizes)
    start(s, random, TILE)
    weights, b = s.matrices[name], s.buffers
    source, norm = {"output": (b.x_attention, "ffn_norm"), "down": (b.x_feed_forward, "final_norm")}[name]
    x = activation(random, TILE, weights.shape[1])
    added = random.normal(0, 5, (TILE, s.decoder.hidden)).astype(np.float32)
    s.write(source, x.words())
    s.write(b.hidden, added)
    s.run(s.dispatches(TILE)[name])
    expected = x.values() @ weights.T + added
    hidden = s.read(b.hidden, shape=expected.shape)
    close(hidden, expected, magnitude(x, weights), SUM)
    check_next(s, hidden, norm)


def test_head_has_no_residual(stage, tuning, kind, random):
    s = stage(tuning, kind)
    start(s, random, TILE)
    weights = s.matrices["head"]
    x = activation(random, TILE, s.decoder.hidden)
    s.write(s.buffers.x_hidden, x.words())
    s.run(s.dispatches(TILE)["head"])
    expected = normed(s, x) @ weights.T
    close(s.read(s.buffers.logits, shape=expected.shape), expected, magnitude(x, weights), SUM)


def test_gate_up(stage, tuning, kind, random):
    s = stage(tuning, kind)
    start(s, random, TILE)
    x, outputs = activation(random, TILE, s.decoder.hidden), s.decoder.feed_forward
    x = replace(x, scales=x.scales / np.float32(10))
    s.write(s.buffers.x_hidden, x.words())
    s.run(s.dispatches(TILE)["gate_up"])
    sums = normed(s, x) @ s.matrices["gate_up"].T
    words = s.read(s.buffers.x_feed_forward, np.uint32, (TILE, outputs // 32, 12))
    out = Activation.parse(words, outputs // 32)
    out.assert_rounds(silu(sums[:, :outputs]) * sums[:, outputs:], tolerance=1e-5)


def test_quantize(stage, tuning, random):
    """Of exact input: codes are the twin's but for ties, which a division that is off by an ulp turns over."""
    s = stage(tuning)
    start(s, random)
    columns = s.decoder.feed_forward
    values = (random.normal(0, 1, (WIDTH, columns)) * 10.0 ** random.integers(-6, 6, (WIDTH, 1))).astype(np.float32)
    values[3, 64:96] = 0
    values[4, :32] = np.arange(32) - 0.5  # many ties: the scale is 30.5 / 127
    kernel = Kernel.of("quantize", K=columns, THREADS=4)
    bindings = (s.buffers.control_head, s.new(values), s.buffers.x_feed_forward)
    s.run([Dispatch(kernel, bindings, (-(-columns // 32 // 4), WIDTH, 1))])
    x = Activation.parse(s.read(s.buffers.x_feed_forward, np.uint32, (WIDTH, columns // 32, 12)), columns // 32)
    expected = quantize(values)
    np.testing.assert_allclose(x.scales, expected.scales, rtol=3e-7)
    x.assert_rounds(values)
    assert np.mean(x.codes != expected.codes) < 0.01


@pytest.mark.parametrize("kv_f16", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("sizes, layout", [({}, Q4), (GROUPED, Q8_ALL)], ids=["adjacent", "halves and bias"])
def test_qkv(stage, tuning, sizes, layout, kv_f16, random):
    s = stage(tuning, layout, kv_f16, **sizes)
    d, b = s.decoder, s.buffers
    nodes, order = start(s, random, TILE), s.order()
    half, heads = d.head_size // 2, d.heads + 2 * d.kv_heads
    x, weights = activation(random, TILE, d.hidden), s.matrices["qkv"]
    bias = s.vectors.get("qkv_bias", np.zeros(len(weights)))
    s.write(b.x_hidden, x.words())
    s.run(s.dispatches(TILE)["qkv"])

    rows = (normed(s, x) @ weights.T + bias).reshape(TILE, heads, d.head_size)
    size = (magnitude(x, weights) + np.abs(bias)).reshape(rows.shape).max(-1)[..., None, None] * 2
    pairs = rows.reshape(TILE, heads, half, 2)
    turned = pairs if d.rope_pairs == "adjacent" else rows.reshape(TILE, heads, 2, half).swapaxes(2, 3)
    turned = rope(turned, LENGTH + nodes[:, 2].astype(np.int64), d.rope_base)
    close(s.read(b.q, shape=(TILE, d.heads, half, 2)), turned[:, : d.heads], size[:, : d.heads], SUM)

    kind = np.float16 if kv_f16 else np.float32
    cache = s.read(b.kv[0], kind, (2, d.kv_heads, b.slots, half, 2))
    written = cache[:, :, order[LENGTH : LENGTH + TILE]]  # entry length + node, whatever the depth
    keys, values = turned[:, d.heads : d.heads + d.kv_heads], pairs[:, d.heads + d.kv_heads :]
    expected = np.stack([keys, values]).swapaxes(1, 2)
    close(written, expected, np.abs(expected) * (1e3 if kv_f16 else 0) + size.max(), SUM)


def source(kind, blocks, random):
    """Bytes of blocks of 32, and of the others that share a super-block with the last: any that make finite numbers."""
    block, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    count = -(-blocks * 32 // block)
    if block == 1:
        values = random.normal(0, 10.0 ** random.integers(-7, 3, count)).astype(np.float32)
        values[:32] = 0
        return values.view(np.uint8) if kind == "F32" else gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])
    return random.integers(0, 256, (count, nbytes), np.uint8)  # scales too: some of them infinite, some too large


@pytest.mark.parametrize("blocks", [1, 203])
@pytest.mark.parametrize("kind", LAYOUT_OF)
def test_repack_equals_its_twin(stage, kind, blocks, random):
    """Blocks behind `first`, none beside them; `first` is even, as the plan keeps it for scales that share a word."""
    s, first = stage(SOFTWARE), 6
    raw = np.ascontiguousarray(source(kind, blocks, random)).view(np.uint8).ravel()
    total = first + blocks + 4
    for target in {LAYOUT_OF[kind], common_layout([LAYOUT_OF[kind], Q8_ALL])}:
        codes = s.new(np.full(total * target.code_bytes, 0xAA, np.uint8))
        scales = s.new(np.full(-(-total * target.scale_bytes // 4) * 4, 0xAA, np.uint8))
        given = (np.array([first, blocks], np.uint32), np.pad(raw, (0, -len(raw) % 4 + 4)))
        bindings = (*map(s.new, given), codes, scales)
        kernel = Kernel.of("repack", KIND=kind, **target.numbers)
        s.run([Dispatch(kernel, bindings, (-(-blocks // 128), 1, 1))])
        for binding, expected in zip((codes, scales), layout.repack(kind, raw.tobytes(), target), strict=True):
            unit = target.code_bytes if binding is codes else target.scale_bytes
            size = -(-blocks * unit // 4) * 4
            found = s.read(binding, np.uint8)
            assert found[first * unit :][:size].tobytes() == expected.tobytes()[:size]
            assert (found[: first * unit] == 0xAA).all() and (found[first * unit + size :] == 0xAA).all()


def test_a_finished_step_does_nothing(stage, tuning, random):
    """With a flag set every kernel returns at once: the rest of a window is cheap and changes nothing."""
    s = stage(tuning)
    s.control(random_tree(random, s.decoder.vocabulary, TILE), LENGTH, flags=1, rest=(LENGTH + 1, 3, 3))
    s.request(100, 96, 10)
    before = s.state()
    b = s.buffers
    watched = (b.hidden, b.x_hidden, b.x_attention, b.q, b.partial, b.logits)
    for binding in watched:
        s.write(binding, np.full(binding.size, 0x5A, np.uint8))
    dispatches = s.dispatches(TILE)
    names = [name for name in dispatches if name not in ("nll", "prefill")]
    for name in names:
        s.run(dispatches[name])
    for binding in watched:
        assert (s.read(binding, np.uint8) == 0x5A).all()
    assert s.state() == before
