"""The numpy twins of the repacking kernels, against the `gguf` package's own dequantization."""

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.errors import UnknownModelError
from pyweb.weights.layout import (
    LAYOUT_OF,
    Q4,
    Q8,
    Q8_ALL,
    Q8_HALVES,
    Q8_OFFSET,
    common_layout,
    dequantize,
    layout_of,
    repack,
)

KINDS = sorted(LAYOUT_OF)
EXACT = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
SCALES_AT = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}  # byte of each f16
LARGEST = 65504


def kind_of(kind):
    return gguf.GGMLQuantizationType[kind]


def blocks_of(kind, count, seed, scales=None):
    """Random source blocks, at least `count` of 32 values: any codes, f16 scales that are finite or `scales`."""
    random = np.random.default_rng(seed)
    block, nbytes = gguf.GGML_QUANT_SIZES[kind_of(kind)]
    count = -(-count * 32 // block)
    if block == 1:
        values = random.normal(0, 10.0 ** random.integers(-9, 4), count).astype(np.float32)
        values[: 7 * 32 : 3] = 0
        return values.view(np.uint8) if kind == "F32" else gguf.quants.quantize(values, kind_of(kind)).view(np.uint8)
    raw = random.integers(0, 256, (count, nbytes), np.uint8)
    for at in SCALES_AT.get(kind, (0,)):
        halves = random.normal(0, 10.0 ** random.integers(-6, 1), count).astype(np.float16)
        halves[::7] = 0
        raw[:, at : at + 2] = (halves if scales is None else random.choice(scales, count))[:, None].view(np.uint8)
    return raw


def expected_of(kind, raw):
    if kind == "F32":
        return raw.view(np.float32).reshape(-1, 32)
    return gguf.quants.dequantize(raw.reshape(1, -1), kind_of(kind)).reshape(-1, 32)


def found_of(kind, raw, layout=None):
    codes, scales = repack(kind, raw.tobytes(), layout)
    return dequantize(layout or LAYOUT_OF[kind], codes, scales, 32)


@pytest.mark.parametrize("kind", EXACT)
@given(blocks=st.integers(1, 45), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_repacked_blocks_dequantize_to_the_packages_values(kind, blocks, seed):
    raw = blocks_of(kind, blocks, seed)
    found = found_of(kind, raw)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected_of(kind, raw))


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K", "Q6_K"])
@given(blocks=st.integers(1, 45), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_k_kinds_round_scales_to_f16(kind, blocks, seed):
    """Scale and minimum are products, rounded by 2^-11 of themselves; below f16's normal range they are exact."""
    raw = blocks_of(kind, blocks, seed)
    expected, plain = expected_of(kind, raw), raw.copy()
    if kind != "Q6_K":  # the same without minimum: what is left is scale * code
        plain[:, 2:4] = 0
    scaled = expected_of(kind, plain)
    largest = np.abs(scaled).max(1) + np.abs(expected - scaled).max(1)
    assert np.all(np.abs(found_of(kind, raw) - expected).max(1) <= 2.0**-10 * largest)


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32"])
@given(blocks=st.integers(1, 45), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_floats_are_within_half_a_step(kind, blocks, seed):
    raw = blocks_of(kind, blocks, seed)
    expected = expected_of(kind, raw)
    codes, scales = repack(kind, raw.tobytes())
    steps = scales.view(np.float16)[: len(expected)].astype(np.float32)[:, None]
    assert np.all(np.abs(dequantize(Q8, codes, scales, 32) - expected) <= steps * (0.5 + 1e-5))
    largest = np.abs(expected).max(1)[:, None]
    assert np.all(steps * 127 <= largest * (1 + 2.0**-10) + 127 * 2.0**-24)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [Q4, Q8, Q8_OFFSET, Q8_HALVES, Q8_ALL], ids=str)
def test_a_common_layout_changes_no_value(kind, other):
    raw = blocks_of(kind, 40, 3)
    assert np.array_equal(found_of(kind, raw, common_layout([LAYOUT_OF[kind], other])), found_of(kind, raw))


def test_common_layouts():
    assert common_layout([Q4, Q4]) is Q4
    assert common_layout([Q4, Q8]) == common_layout([Q8, Q8_OFFSET]) == Q8_OFFSET
    assert common_layout([Q8, Q8_HALVES]) == Q8_HALVES
    assert common_layout([Q4, Q4, Q8_HALVES]) == common_layout([Q8_OFFSET, Q8_HALVES]) == Q8_ALL


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_scales_stay_finite(kind):
    """What isn't finite counts as 0, what f16 can't hold stays at its largest number; subnormal numbers are exact."""
    halves = np.array([np.inf, -np.inf, np.nan, LARGEST, -LARGEST, 2**-24, 1000 * 2**-24, -0.0], np.float16)
    raw = blocks_of(kind, 400, 5, halves)
    if kind in ("F16", "BF16", "F32"):
        raw = np.frombuffer(np.random.default_rng(5).bytes(raw.nbytes), np.uint8)
    with np.errstate(all="ignore"):
        found, expected = found_of(kind, raw), expected_of(kind, raw)
    assert np.isfinite(found).all()
    small = np.abs(np.nan_to_num(expected, nan=LARGEST)).max(1) < 2**-14
    assert kind in ("BF16", "F16", "F32") or small.any() and np.array_equal(found[small], expected[small])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 2, 33])
def test_sizes(kind, blocks):
    """Words as the plan allocates them; an odd number of half-words leaves a half of zeros."""
    layout, raw = LAYOUT_OF[kind], blocks_of(kind, blocks, 1)
    block, nbytes = gguf.GGML_QUANT_SIZES[kind_of(kind)]
    blocks = raw.nbytes // nbytes * block // 32
    codes, scales = repack(kind, raw.tobytes())
    assert codes.dtype == scales.dtype == np.uint32
    assert codes.nbytes == blocks * layout.code_bytes
    assert scales.nbytes == -(-blocks * layout.scale_bytes // 4) * 4
    if blocks * layout.scale_bytes % 4:
        assert scales[-1] >> 16 == 0


def test_where_codes_lie():
    """4 bits: element 4k + i in the low nibble of byte i of word k, element 16 + 4k + i in its high one."""
    values = np.arange(32) % 16
    packed = (values[:16] | values[16:] << 4).astype(np.uint8)
    affine = np.array([1, 0], np.float16).view(np.uint8)
    codes, scales = repack("Q4_1", np.concatenate([affine, packed]).tobytes())
    for element, value in enumerate(values):
        shift = 8 * (element % 4) + 4 * (element // 16)
        assert codes[element % 16 // 4] >> shift & 15 == value
    assert scales.view(np.float16).tolist() == [1, 0]

    signed = np.arange(-16, 16, dtype=np.int8)
    codes, scales = repack("Q8_0", np.float16(0.5).tobytes() + signed.tobytes())
    assert codes.view(np.int8).tolist() == signed.tolist()
    assert scales.view(np.float16).tolist() == [0.5, 0]
    halves = repack("Q8_0", np.float16(0.5).tobytes() + signed.tobytes(), Q8_ALL)[1]
    assert halves.view(np.float16).tolist() == [0.5, 0.5, 0, 0]


def test_layout_of():
    assert (layout_of("Q4_1", "x"), layout_of("Q8_0", "x")) == (Q4, Q8)
    for kind in ("IQ2_XS", "Q2_K", "Q3_K", "I8"):
        with pytest.raises(UnknownModelError, match=f"blk.0.ffn_up.weight.*{kind}.*Q4_0, .*BF16 or F32"):
            layout_of(kind, "blk.0.ffn_up.weight")
