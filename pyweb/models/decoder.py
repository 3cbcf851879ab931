"""What a decoder-only transformer is made of: sizes, and which tensors of a file form which matrix."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyweb.errors import ModelFileError

__all__ = ["Decoder", "Matrix", "Vector", "required"]

_STRIDE = 7919  # a prime, so that few vocabularies share a factor with it


@dataclass(frozen=True)
class Matrix:
    """A matrix of shape (rows, columns): the rows of the `sources`, one below the other.

    `cut` says that it may lie in several buffers, each with the same rows of every source; those are equally long then.
    """

    name: str
    sources: tuple[str, ...]
    rows: int
    columns: int
    cut: bool = True


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
        for name, size, multiple in (
            ("hidden", self.hidden, 32),
            ("feed_forward", self.feed_forward, 32),
            ("heads", self.heads * self.head_size, 32),
            ("head", self.head_size, 8),  # attention reads four pairs at a time
        ):
            if not size or size % multiple:
                raise ModelFileError(
                    f"The model's {name} size {size} is not a multiple of {multiple}.", "Choose another model."
                )
        if self.heads % self.kv_heads:
            raise ModelFileError(f"{self.heads} query heads can't share {self.kv_heads} KV heads.")
        if not 1e-20 <= self.norm_eps <= 1 or not 1 <= self.rope_base <= 1e20:
            numbers = f"norm epsilon {self.norm_eps} or RoPE base {self.rope_base}"
            raise ModelFileError(f"The model's {numbers} can't be right.")

    def varied_ids(self, count: int) -> list[int]:
        """Ids without id 0 that repeat as late as the vocabulary allows: text for checks and measurements."""
        return [1 + i * _STRIDE % (self.vocabulary - 1) for i in range(count)]


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
