"""Llama (and SmolLM2, which is one): RMSNorm, RoPE over adjacent pairs in GGUF's row order, SwiGLU, head maybe tied."""

from pyweb.errors import UnknownModelError
from pyweb.models.decoder import Decoder, Matrix, Vector, required
from pyweb.weights.gguf import GGUF

__all__ = ["llama"]


def llama(gguf: GGUF) -> Decoder:
    """The decoder that a GGUF of architecture `llama` describes.

    Raises:
        ModelFileError: a size is missing or makes no sense.
        UnknownModelError: the file uses a part of the family that isn't built (scaled RoPE).
    """
    meta = gguf.metadata

    def size(key: str, kind: type = int):
        return required(meta, f"llama.{key}", kind)

    if "rope_freqs.weight" in gguf.tensors or "llama.rope.scaling.type" in meta:
        raise UnknownModelError(
            "The model scales its RoPE frequencies, which pyweb doesn't do yet.", "Choose another model."
        )
    hidden, heads = size("embedding_length"), size("attention.head_count")
    kv_heads = size("attention.head_count_kv") if "llama.attention.head_count_kv" in meta else heads
    head_size = size("attention.key_length") if "llama.attention.key_length" in meta else hidden // heads
    feed_forward, layers = size("feed_forward_length"), size("block_count")
    embedding = gguf.tensors.get("token_embd.weight")
    vocabulary = embedding.shape[0] if embedding else size("vocab_size")
    head = "output.weight" if "output.weight" in gguf.tensors else "token_embd.weight"

    def matrices(layer: int) -> dict[str, Matrix]:
        def matrix(name: str, rows: int, columns: int, *parts: str) -> Matrix:
            return Matrix(
                f"blk.{layer}.{name}", tuple(f"blk.{layer}.{part}.weight" for part in parts), rows, columns
            )

        qkv_rows = (heads + 2 * kv_heads) * head_size
        return {
            "qkv": matrix("qkv", qkv_rows, hidden, "attn_q", "attn_k", "attn_v"),
            "output": matrix("output", hidden, heads * head_size, "attn_output"),
            "gate_up": matrix("gate_up", 2 * feed_forward, hidden, "ffn_gate", "ffn_up"),
            "down": matrix("down", hidden, feed_forward, "ffn_down"),
        }

    def vectors(layer: int) -> dict[str, Vector]:
        names = ("attn_norm", "ffn_norm")
        return {
            name: Vector(f"blk.{layer}.{name}", (f"blk.{layer}.{name}.weight",), hidden) for name in names
        }

    return Decoder(
        architecture="llama",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        feed_forward=feed_forward,
        vocabulary=vocabulary,
        context=size("context_length"),
        rope_base=required(meta, "llama.rope.freq_base", float)
        if "llama.rope.freq_base" in meta
        else 10000.0,
        rope_pairs="adjacent",
        norm_eps=size("attention.layer_norm_rms_epsilon", float),
        embedding=Matrix("embedding", ("token_embd.weight",), vocabulary, hidden),
        head=Matrix("head", (head,), vocabulary, hidden),
        final_norm=Vector("final_norm", ("output_norm.weight",), hidden),
        matrices=tuple(matrices(layer) for layer in range(layers)),
        vectors=tuple(vectors(layer) for layer in range(layers)),
    )
