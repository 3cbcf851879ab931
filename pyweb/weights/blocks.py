"""GGUF's blocks as codes, scales and offsets: the numpy twin of `shaders/include/repack_*.wgsl`.

Formats: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. A file may hold anything: a scale that is not
finite counts as 0, and what is too large for f16 stays at its largest number.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Blocks", "read_blocks"]

_LARGEST = 65504  # of f16


class Blocks(NamedTuple):
    """n blocks of 32: w = scale * code + offset.

    `codes` are integers (n, 32), `scales` f16 (n, 2) for elements 0..15 and 16..31, `offsets` f16 (n,).
    """

    codes: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray


def read_blocks(kind: str, raw: bytes) -> Blocks:
    """The blocks of 32 in whole blocks of a GGUF kind (`LAYOUT_OF` lists them)."""
    data = np.frombuffer(raw, np.uint8)
    if kind in ("F16", "BF16", "F32"):
        return _floats(_values(kind, data).reshape(-1, 32))
    if kind.endswith("_K"):
        return _super_blocks(kind, data)
    offset, high, nbytes = {
        "Q4_0": (False, False, 18),
        "Q4_1": (True, False, 20),
        "Q5_0": (False, True, 22),
        "Q5_1": (True, True, 24),
        "Q8_0": (False, False, 34),
    }[kind]
    blocks = data.reshape(-1, nbytes)
    scales, blocks = _halves(blocks[:, :2]), blocks[:, 2:]
    offsets = np.zeros_like(scales)
    if offset:
        offsets, blocks = _halves(blocks[:, :2]), blocks[:, 2:]
    if kind == "Q8_0":
        return _blocks(blocks.view(np.int8), scales, offsets)
    codes = np.concatenate([blocks[:, -16:] & 15, blocks[:, -16:] >> 4], axis=1).astype(np.int16)
    if high:
        codes |= np.unpackbits(blocks[:, :4], axis=1, bitorder="little").astype(np.int16) << 4
    if kind == "Q4_0":
        offsets = _rounded(scales.astype(np.float32) * -8)
    if kind == "Q5_0":
        codes -= 16
    return _blocks(codes, scales, offsets)


def _blocks(codes: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> Blocks:
    """With one scale a block."""
    return Blocks(codes, np.repeat(scales, 2, axis=1), offsets[:, 0])


def _halves(columns: np.ndarray) -> np.ndarray:
    """f16 (n, 1) from bytes (n, 2)."""
    halves = np.ascontiguousarray(columns).view(np.float16)
    return np.where(np.isfinite(halves), halves, np.float16(0))


def _rounded(values: np.ndarray) -> np.ndarray:
    """f32 to the nearest f16."""
    return np.clip(values, -_LARGEST, _LARGEST).astype(np.float16)


def _super_blocks(kind: str, data: np.ndarray) -> Blocks:
    """256 elements with eight 6-bit scales and minima (Q4_K, Q5_K) or sixteen 8-bit scales (Q6_K)."""
    if kind == "Q6_K":
        return _q6_k(data.reshape(-1, 210))
    blocks = data.reshape(-1, 144 if kind == "Q4_K" else 176)
    scale, minimum = _halves(blocks[:, :2]), _halves(blocks[:, 2:4])
    low, middle, high = (blocks[:, at : at + 4] for at in (4, 8, 12))
    scales = np.concatenate([low & 63, high & 15 | low >> 6 << 4], axis=1)
    minima = np.concatenate([middle & 63, high >> 4 | middle >> 6 << 4], axis=1)
    nibbles = blocks[:, -128:].reshape(-1, 4, 1, 32) >> np.array([0, 4], np.uint8)[:, None] & 15
    codes = nibbles.reshape(-1, 8, 32)
    if kind == "Q5_K":
        codes |= (blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1) << 4
    return _blocks(
        codes.reshape(-1, 32),
        _rounded(scale.astype(np.float32) * scales).reshape(-1, 1),
        _rounded(-minimum.astype(np.float32) * minima).reshape(-1, 1),
    )


def _q6_k(blocks: np.ndarray) -> Blocks:
    low = blocks[:, :128].reshape(-1, 2, 1, 64) >> np.array([0, 4], np.uint8)[:, None] & 15
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    codes = (low.reshape(-1, 32) | high.reshape(-1, 32) << 4).astype(np.int16) - 32
    scales = _halves(blocks[:, 208:]).astype(np.float32) * blocks[:, 192:208].view(np.int8)
    return Blocks(codes, _rounded(scales).reshape(-1, 2), np.zeros(len(codes), np.float16))


def _values(kind: str, data: np.ndarray) -> np.ndarray:
    if kind == "BF16":
        values = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = data.view(np.float16 if kind == "F16" else np.float32).astype(np.float32)
    return np.where(np.isfinite(values), values, np.float32(0))


def _floats(values: np.ndarray) -> Blocks:
    """8 bits: the scale is rounded up, so that no code is beyond 127 and every value is within half a code's step."""
    step = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    scales = _rounded(step)
    scales = np.where((scales < step) & (scales < _LARGEST), np.nextafter(scales, np.float16(np.inf)), scales)
    codes = np.rint(values / np.where(scales == 0, 1, scales).astype(np.float32))
    return _blocks(np.clip(codes, -127, 127), scales, np.zeros_like(scales))
