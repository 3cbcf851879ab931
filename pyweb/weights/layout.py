"""The runtime layouts of a quantized matrix and their numpy twins.

A row is cut into blocks of 32 columns; codes and scales lie apart. A layout is three choices:

- 4-bit codes, unsigned, 4 words a block (word k: elements 4k..4k+3 in the low nibbles of its bytes, 16+4k.. in the high
  ones), or 8-bit codes, signed, 8 words a block in element order;
- one f16 scale a block, or one for each half of 16;
- with or without one f16 offset a block: w = scale * code + offset.

Scales and offset of a block lie side by side: one f16 takes half a word, two a word, three two words with a zero.
Any layout's values can be kept in 8 bits with the scales and the offset that they need, without rounding, so a matrix
whose sources differ takes their `common_layout`.

numpy is imported where it is used: in the browser it loads while weights stream, and only tests need these twins.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyweb.errors import UnknownModelError

__all__ = ["LAYOUT_OF", "Layout", "Q4", "Q8", "Q8_ALL", "Q8_HALVES", "Q8_OFFSET"]
__all__ += ["common_layout", "dequantize", "layout_of", "repack"]

BLOCK = 32


@dataclass(frozen=True)
class Layout:
    """One runtime layout: `bits` a code (4 or 8), `scales` a block (1 or 2), and whether there is an `offset`."""

    bits: int
    scales: int = 1
    offset: bool = False

    @property
    def code_bytes(self) -> int:
        """Bytes of a block's codes."""
        return BLOCK * self.bits // 8

    @property
    def scale_bytes(self) -> int:
        """Bytes of a block's scales and offset; never more than those of its codes."""
        return {1: 2, 2: 4, 3: 8}[self.scales + self.offset]

    @property
    def numbers(self) -> dict[str, object]:
        """What kernels have to know, by their names for it."""
        return {"BITS": self.bits, "SCALES": self.scales, "OFFSET": self.offset}

    def __str__(self) -> str:
        return f"q{self.bits}{' halves' * (self.scales - 1)}{' offset' * self.offset}"


Q4 = Layout(4, offset=True)
Q8 = Layout(8)
Q8_OFFSET = Layout(8, offset=True)
Q8_HALVES = Layout(8, scales=2)
Q8_ALL = Layout(8, scales=2, offset=True)

LAYOUT_OF = {
    "Q4_0": Q4,
    "Q4_1": Q4,
    "Q4_K": Q4,
    "Q5_0": Q8,
    "Q5_1": Q8_OFFSET,
    "Q5_K": Q8_OFFSET,
    "Q6_K": Q8_HALVES,
    "Q8_0": Q8,
    "F16": Q8,
    "BF16": Q8,
    "F32": Q8,
}
"""Runtime layout of each GGUF kind that matrices may have; `shaders/repack.wgsl` does it."""


def layout_of(kind: str, tensor: str) -> Layout:
    """Raises UnknownModelError for a kind that has no runtime layout."""
    if kind not in LAYOUT_OF:
        raise UnknownModelError(
            f"The tensor {tensor} has the weight type {kind}, which pyweb can't run.",
            f"Choose a file whose matrices are {', '.join(list(LAYOUT_OF)[:-1])} or {list(LAYOUT_OF)[-1]}.",
        )
    return LAYOUT_OF[kind]


def common_layout(layouts: Iterable[Layout]) -> Layout:
    """The smallest layout that keeps the values of all `layouts` as they are."""
    first, *others = set(layouts)
    if not others:
        return first
    every = (first, *others)
    return Layout(8, max(layout.scales for layout in every), any(layout.offset for layout in every))


def repack(kind: str, raw: bytes, layout: Layout | None = None):
    """Twin of the repacking shader.

    Args:
        kind: GGUF type name.
        raw: whole blocks in file order.
        layout: the kind's own, or one that is `common_layout` of it and others.

    Returns:
        (codes, scales): uint32 arrays as the shader leaves them.
    """
    import numpy as np

    from pyweb.weights.blocks import read_blocks

    layout, blocks = layout or LAYOUT_OF[kind], read_blocks(kind, raw)
    codes = blocks.codes.astype(np.int8).view(np.uint8)
    if layout.bits == 4:
        codes = codes[:, :16] | codes[:, 16:] << 4
    columns = [blocks.scales[:, : layout.scales]]
    if layout.offset:
        columns.append(blocks.offsets[:, None])
    if layout.scale_bytes == 8:
        columns.append(np.zeros_like(blocks.offsets[:, None]))
    scales = np.concatenate(columns, axis=1).ravel()
    scales = np.pad(scales, (0, len(scales) % 2))
    return np.ascontiguousarray(codes).view(np.uint32).ravel(), scales.view(np.uint32)


def dequantize(layout: Layout, codes, scales, columns: int):
    """Float32 matrix of a layout's words, shape (rows, columns): what the kernels compute with."""
    import numpy as np

    if layout.bits == 4:
        packed = codes.view(np.uint8).reshape(-1, 16)
        values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    else:
        values = codes.view(np.int8).reshape(-1, BLOCK).astype(np.float32)
    halves = scales.view(np.float16).astype(np.float32)[: len(values) * layout.scale_bytes // 2]
    halves = halves.reshape(len(values), -1)
    values *= np.repeat(halves[:, : layout.scales], BLOCK // layout.scales, axis=1)
    if layout.offset:
        values += halves[:, layout.scales, None]
    return values.reshape(-1, columns)
