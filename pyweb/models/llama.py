"""Llama (and SmolLM2, which is one): GGUF stores the rows of queries and keys so that RoPE's pairs are neighbours."""

from pyweb.models.decoder import Decoder
from pyweb.models.transformer import transformer
from pyweb.weights.gguf import GGUF

__all__ = ["llama"]


def llama(gguf: GGUF) -> Decoder:
    """The decoder that a GGUF of architecture `llama` describes; raises as `transformer` does."""
    return transformer(gguf, "llama", rope_pairs="adjacent")
