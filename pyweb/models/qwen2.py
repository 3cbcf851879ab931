"""Qwen2 and Qwen2.5: biases of query, key and value; RoPE turns each head's first half with its second."""

from pyweb.models.decoder import Decoder
from pyweb.models.transformer import transformer
from pyweb.weights.gguf import GGUF

__all__ = ["qwen2"]


def qwen2(gguf: GGUF) -> Decoder:
    """The decoder that a GGUF of architecture `qwen2` describes; raises as `transformer` does."""
    return transformer(gguf, "qwen2", rope_pairs="halves")
