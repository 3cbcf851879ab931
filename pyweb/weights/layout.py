"""The runtime layouts of a quantized matrix and their numpy twins.

A row is cut into blocks of 32 columns. Both layouts keep codes and scales apart:

- `Q4`: 4-bit codes, 4 words a block (word k: elements 4k..4k+3 in the low nibbles of its bytes, 16+4k.. in the high
  ones), and one word of scales a block, (f16 scale, f16 offset): w = scale * code + offset.
- `Q8`: signed 8-bit codes, 8 words a block in element order, and one f16 scale a block, two to a word.

numpy is imported where it is used: in the browser it loads while weights stream, and only tests need these twins.
"""

from dataclasses import dataclass

from pyweb.errors import UnknownModelError

__all__ = ["LAYOUT_OF", "Layout", "Q4", "Q8", "dequantize", "layout_of", "repack"]

BLOCK = 32


@dataclass(frozen=True)
class Layout:
    """Sizes of one runtime layout, in bytes a block."""

    name: str
    bits: int
    code_bytes: int
    scale_bytes: int


Q4 = Layout("q4", 4, 16, 4)
Q8 = Layout("q8", 8, 32, 2)

LAYOUT_OF = {"Q4_1": Q4, "Q8_0": Q8}
"""Runtime layout of each GGUF kind that can be repacked; `shaders/repack_<kind>.wgsl` does it."""


def layout_of(kind: str, tensor: str) -> Layout:
    """Raises UnknownModelError for a kind that has no runtime layout."""
    if kind not in LAYOUT_OF:
        raise UnknownModelError(
            f"The tensor {tensor} has the weight type {kind}, which pyweb can't run.",
            f"Choose a file whose matrices are {' or '.join(LAYOUT_OF)}.",
        )
    return LAYOUT_OF[kind]


def repack(kind: str, raw: bytes):
    """Twin of the repacking shaders.

    Args:
        kind: GGUF type name.
        raw: whole blocks in file order.

    Returns:
        (codes, scales): uint32 arrays as the shader leaves them.
    """
    import numpy as np

    if kind == "Q4_1":
        words = np.frombuffer(raw, np.uint32).reshape(-1, 5)
        return np.ascontiguousarray(words[:, 1:]).ravel(), np.ascontiguousarray(words[:, 0])
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, 34)
    scales = np.ascontiguousarray(blocks[:, :2]).view(np.uint16).ravel()
    if len(scales) % 2:
        scales = np.append(scales, np.uint16(0))
    return np.ascontiguousarray(blocks[:, 2:]).view(np.uint32).ravel(), scales.view(np.uint32)


def dequantize(layout: Layout, codes, scales, columns: int):
    """Float32 matrix of a layout's words, shape (rows, columns): what the kernels compute with."""
    import numpy as np

    if layout is Q4:
        packed = codes.view(np.uint8).reshape(-1, 16)
        values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
        affine = scales.view(np.float16).reshape(-1, 2).astype(np.float32)
        return (values * affine[:, :1] + affine[:, 1:]).reshape(-1, columns)
    values = codes.view(np.int8).reshape(-1, BLOCK).astype(np.float32)
    scale = scales.view(np.float16).astype(np.float32)[: len(values)]
    return (values * scale[:, None]).reshape(-1, columns)
