"""The numpy twins of the repacking kernels, against the `gguf` package's own dequantization."""

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.errors import UnknownModelError
from pyweb.weights.layout import LAYOUT_OF, Q4, Q8, dequantize, layout_of, repack

KINDS = sorted(LAYOUT_OF)
BLOCK_BYTES = {"Q4_1": 20, "Q8_0": 34}


def blocks_of(kind, count, seed):
    """Random blocks: any codes, scales that are finite."""
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (count, BLOCK_BYTES[kind]), np.uint8)
    affine = 2 if kind == "Q4_1" else 1
    scales = random.normal(0, 0.1, (count, affine)).astype(np.float16)
    scales[::7] = 0
    raw[:, : 2 * affine] = scales.view(np.uint8)
    return raw


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.integers(1, 9), blocks=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_repacked_blocks_dequantize_to_the_packages_values(kind, rows, blocks, seed):
    raw = blocks_of(kind, rows * blocks, seed)
    codes, scales = repack(kind, raw.tobytes())
    found = dequantize(LAYOUT_OF[kind], codes, scales, blocks * 32)
    expected = gguf.quants.dequantize(raw.reshape(rows, -1), gguf.GGMLQuantizationType[kind])
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 2, 33])
def test_sizes(kind, blocks):
    """Words as the plan allocates them; an odd 8-bit block leaves half a word of zeros."""
    layout = LAYOUT_OF[kind]
    codes, scales = repack(kind, blocks_of(kind, blocks, 1).tobytes())
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


def test_layout_of():
    assert (layout_of("Q4_1", "x"), layout_of("Q8_0", "x")) == (Q4, Q8)
    with pytest.raises(UnknownModelError, match="blk.0.ffn_up.weight.*IQ2_XS"):
        layout_of("IQ2_XS", "blk.0.ffn_up.weight")
