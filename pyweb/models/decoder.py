"""What a decoder-only transformer is made of: sizes, and which tensors of a file form which matrix."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyweb.errors import ModelFileError

__all__ = ["Decoder", "Matrix", "Vector", "required"]


@dataclass(frozen=True)
class Matrix:
    """A matrix of shape (rows, columns): the rows of the `sources`, one below the other."""

    name: str
    sources: tuple[str, ...]
    rows: int
    columns: int


@dataclass(frozen=True)
class Vector:
    """A float32 vector, the concatenation of its `sources`."""

    name: str
    sources: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Decoder:
    """Sizes of a pre-norm decoder with RoPE, grouped-query attention and a gated feed-forward.

    `rope_pairs` says which rows RoPE turns together: "adjacent" (2i, 2i+1) or "halves" (i, i + head_size / 2).
    """

    architecture: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    context: int
    rope_base: float
    rope_pairs: str
    norm_eps: float
    embedding: Matrix
    head: Matrix
    final_norm: Vector
    matrices: tuple[dict[str, Matrix], ...]
    vectors: tuple[dict[str, Vector], ...]

    def __post_init__(self):
        for name, size in (
            ("hidden", self.hidden),
            ("feed_forward", self.feed_forward),
            ("head", self.heads * self.head_size),
        ):
            if size % 32:
                raise ModelFileError(
                    f"The model's {name} size {size} is not a multiple of 32.", "Choose another model."
                )
        if self.heads % self.kv_heads:
            raise ModelFileError(f"{self.heads} query heads can't share {self.kv_heads} KV heads.")


def required(metadata: Mapping[str, object], key: str, kind: type = int):
    """A metadata value that the architecture can't do without.

    Raises:
        ModelFileError: absent or of another type.
    """
    value = metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise ModelFileError(f"The model file lacks a usable {key}.")
    if kind is int and value <= 0:
        raise ModelFileError(f"The model file says {key} = {value}.")
    return kind(value)
