"""Sizes of published models, from their `config.json` on Hugging Face, and the tensors that a GGUF of them has."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pyweb.errors import UsageError

__all__ = ["SHAPES", "Shape", "shape_of"]


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder. `family` is the architecture's GGUF name; a `tied` head is the embedding."""

    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    tied: bool
    context: int
    rope_base: float
    norm_eps: float

    @property
    def parameters(self) -> int:
        """How many numbers the tensors hold."""
        return sum(prod(sizes) for _, sizes in self.tensors())

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of each tensor, rows first, in the file's order."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        yield "token_embd.weight", (self.vocabulary, self.hidden)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            yield f"{block}attn_norm.weight", (self.hidden,)
            for part, rows in (("attn_q", queries), ("attn_k", keys), ("attn_v", keys)):
                yield f"{block}{part}.weight", (rows, self.hidden)
                if self.family == "qwen2":
                    yield f"{block}{part}.bias", (rows,)
            yield f"{block}attn_output.weight", (self.hidden, queries)
            yield f"{block}ffn_norm.weight", (self.hidden,)
            yield f"{block}ffn_gate.weight", (self.feed_forward, self.hidden)
            yield f"{block}ffn_up.weight", (self.feed_forward, self.hidden)
            yield f"{block}ffn_down.weight", (self.hidden, self.feed_forward)
        yield "output_norm.weight", (self.hidden,)
        if not self.tied:
            yield "output.weight", (self.vocabulary, self.hidden)


def _qwen(*sizes: int, vocabulary: int = 151_936, tied: bool = True) -> Shape:
    return Shape("qwen2", *sizes, vocabulary, tied, context=32_768, rope_base=1e6, norm_eps=1e-6)


def _llama(*sizes: int, tied: bool = True) -> Shape:
    """Without the scaling of RoPE's frequencies, which pyweb doesn't do; it changes no size and no time."""
    return Shape("llama", *sizes, 128_256, tied, context=131_072, rope_base=5e5, norm_eps=1e-5)


# Layers, hidden, heads, KV heads, head size, feed-forward.
SHAPES = {
    "qwen2.5-0.5b": _qwen(24, 896, 14, 2, 64, 4864),
    "qwen2.5-1.5b": _qwen(28, 1536, 12, 2, 128, 8960),
    "llama-3.2-1b": _llama(16, 2048, 32, 8, 64, 8192),
    "qwen2.5-3b": _qwen(36, 2048, 16, 2, 128, 11_008),
    "llama-3.2-3b": _llama(28, 3072, 24, 8, 128, 8192),
    "qwen2.5-7b": _qwen(28, 3584, 28, 4, 128, 18_944, vocabulary=152_064, tied=False),
    "llama-3.1-8b": _llama(32, 4096, 32, 8, 128, 14_336, tied=False),
    "tiny": _qwen(2, 64, 4, 2, 16, 128, vocabulary=512, tied=False),
}
"""By name; "tiny" is no model's, it is for tests."""


def shape_of(name: str) -> Shape:
    """Raises UsageError for a name that isn't in `SHAPES`."""
    if not isinstance(name, str) or name not in SHAPES:
        raise UsageError(f"There is no shape {name!r:.60}.", f"The shapes are {', '.join(SHAPES)}.")
    return SHAPES[name]
