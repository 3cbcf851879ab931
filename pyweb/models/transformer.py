"""The decoder that a GGUF of the Llama kind describes; the spec files say in what their families differ."""

from collections.abc import Iterable

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.models.decoder import Decoder, Matrix, Vector, required
from pyweb.weights.gguf import GGUF

__all__ = ["transformer"]

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"


class _Sizes:
    """The sizes in a file's section `family`; each is there and makes sense, or ModelFileError says which doesn't."""

    def __init__(self, gguf: GGUF, family: str):
        self._meta, self._family = gguf.metadata, family
        self.hidden = self.number("embedding_length")
        self.heads = self.number("attention.head_count")
        self.kv_heads = self.number("attention.head_count_kv", self.heads)
        self.head_size = self.number("attention.key_length", self.hidden // self.heads)
        self.feed_forward = self.number("feed_forward_length")
        self.layers = self.number("block_count")
        if self.layers > len(gguf.tensors):
            raise ModelFileError(f"The model file has too few tensors for {self.layers} layers.")
        if self.number("attention.value_length", self.head_size) != self.head_size:
            raise UnknownModelError("The model's values are not as long as its keys, which pyweb can't run.")
        if self.number("rope.dimension_count", self.head_size) != self.head_size:
            raise UnknownModelError("The model turns only a part of each head, which pyweb can't run.")

    def number(self, key: str, otherwise: int | float | None = None, kind: type = int):
        """A value of the section, or `otherwise` where the file doesn't say."""
        key = f"{self._family}.{key}"
        return otherwise if otherwise is not None and key not in self._meta else required(self._meta, key, kind)


def transformer(gguf: GGUF, family: str, rope_pairs: str) -> Decoder:
    """RMSNorm, RoPE, grouped-query attention, SwiGLU; where the file has them biases of query, key and value, and head.

    Args:
        family: the architecture's name, which begins its metadata keys.
        rope_pairs: as in `Decoder`; how GGUF orders the rows of the family's queries and keys.

    Raises:
        ModelFileError: a size is missing or makes no sense.
        UnknownModelError: the file uses a part of the family that isn't built.
    """
    sizes = _Sizes(gguf, family)
    if "rope_freqs.weight" in gguf.tensors or gguf.metadata.get(f"{family}.rope.scaling.type", "none") != "none":
        raise UnknownModelError(
            "The model scales its RoPE frequencies, which pyweb doesn't do yet.", "Choose another model."
        )
    embedding = gguf.tensors.get(_EMBEDDING)
    vocabulary = embedding.shape[0] if embedding and embedding.shape else sizes.number("vocab_size")
    biased = "blk.0.attn_q.bias" in gguf.tensors
    decoder = Decoder(
        architecture=family,
        layers=sizes.layers,
        hidden=sizes.hidden,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_size=sizes.head_size,
        feed_forward=sizes.feed_forward,
        vocabulary=vocabulary,
        context=sizes.number("context_length"),
        rope_base=sizes.number("rope.freq_base", 10000.0, float),
        rope_pairs=rope_pairs,
        norm_eps=sizes.number("attention.layer_norm_rms_epsilon", kind=float),
        embedding=Matrix("embedding", (_EMBEDDING,), vocabulary, sizes.hidden),
        head=Matrix("head", (_HEAD if _HEAD in gguf.tensors else _EMBEDDING,), vocabulary, sizes.hidden),
        final_norm=Vector("final_norm", ("output_norm.weight",), sizes.hidden),
        matrices=tuple(_matrices(sizes, layer) for layer in range(sizes.layers)),
        vectors=tuple(_vectors(sizes, layer, biased) for layer in range(sizes.layers)),
    )
    _check_all_used(gguf, decoder)
    return decoder


def _names(layer: int, parts: Iterable[str], ending: str = "weight") -> tuple[str, ...]:
    return tuple(f"blk.{layer}.{part}.{ending}" for part in parts)


def _qkv_rows(s: _Sizes) -> int:
    return (s.heads + 2 * s.kv_heads) * s.head_size


_QKV = ("attn_q", "attn_k", "attn_v")


def _matrices(s: _Sizes, layer: int) -> dict[str, Matrix]:
    def matrix(name: str, rows: int, columns: int, *parts: str, cut: bool = True) -> Matrix:
        return Matrix(f"blk.{layer}.{name}", _names(layer, parts), rows, columns, cut)

    return {
        "qkv": matrix("qkv", _qkv_rows(s), s.hidden, *_QKV, cut=False),
        "output": matrix("output", s.hidden, s.heads * s.head_size, "attn_output"),
        "gate_up": matrix("gate_up", 2 * s.feed_forward, s.hidden, "ffn_gate", "ffn_up"),
        "down": matrix("down", s.hidden, s.feed_forward, "ffn_down"),
    }


def _vectors(s: _Sizes, layer: int, biased: bool) -> dict[str, Vector]:
    norms = ("attn_norm", "ffn_norm")
    vectors = {name: Vector(f"blk.{layer}.{name}", _names(layer, [name]), s.hidden) for name in norms}
    if biased:
        vectors["qkv_bias"] = Vector(f"blk.{layer}.qkv_bias", _names(layer, _QKV, "bias"), _qkv_rows(s))
    return vectors


def _check_all_used(gguf: GGUF, decoder: Decoder) -> None:
    """A tensor that no kernel reads is a part of the model that would be left out in silence."""
    parts = [decoder.embedding, decoder.head, decoder.final_norm]
    parts += [part for layer in (*decoder.matrices, *decoder.vectors) for part in layer.values()]
    unknown = sorted(set(gguf.tensors) - {source for part in parts for source in part.sources})
    if unknown:
        raise UnknownModelError(
            f"The model has the tensor {unknown[0][:80]!r}, which pyweb doesn't know in architecture "
            f"{decoder.architecture}.",
            "Choose another model.",
        )
