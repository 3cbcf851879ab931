from dataclasses import replace
from pathlib import Path

import pytest

from pyweb.models import decoder_of
from pyweb.weights import parse_gguf

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture(params=["tied", "untied"])
def gguf(request):
    return parse_gguf((FIXTURES / f"tiny_qwen2_{request.param}.gguf").read_bytes())


def test_every_tensor_is_used_once(gguf):
    decoder = decoder_of(gguf)
    parts = [decoder.embedding, decoder.head, decoder.final_norm]
    parts += [part for layer in (*decoder.matrices, *decoder.vectors) for part in layer.values()]
    sources = [source for part in set(parts) for source in part.sources]
    assert set(sources) == set(gguf.tensors)
    assert len(sources) - len(gguf.tensors) == ("output.weight" not in gguf.tensors)


def test_what_differs_from_llama(gguf):
    decoder = decoder_of(gguf)
    assert (decoder.architecture, decoder.rope_pairs) == ("qwen2", "halves")
    bias = decoder.vectors[1]["qkv_bias"]
    assert bias.sources == ("blk.1.attn_q.bias", "blk.1.attn_k.bias", "blk.1.attn_v.bias")
    assert bias.size == decoder.matrices[1]["qkv"].rows


def test_a_file_without_biases_has_none(gguf):
    tensors = {name: tensor for name, tensor in gguf.tensors.items() if not name.endswith(".bias")}
    assert "qkv_bias" not in decoder_of(replace(gguf, tensors=tensors)).vectors[0]
