import math
from dataclasses import replace
from pathlib import Path

import pytest

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.models import decoder_of
from pyweb.weights import GGUF, TensorInfo, parse_gguf

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def tiny(name):
    return parse_gguf((FIXTURES / f"tiny_{name}.gguf").read_bytes())


def changed(gguf, **metadata):
    """With metadata replaced; None takes a key away."""
    entries = gguf.metadata | {f"llama.{key.replace('__', '.')}": value for key, value in metadata.items()}
    return replace(gguf, metadata={key: value for key, value in entries.items() if value is not None})


def test_sizes_of_a_file():
    decoder = decoder_of(tiny("untied"))
    assert (decoder.layers, decoder.hidden, decoder.feed_forward) == (2, 96, 160)
    assert (decoder.heads, decoder.kv_heads, decoder.head_size) == (4, 2, 32)
    assert (decoder.vocabulary, decoder.context, decoder.rope_base) == (227, 128, 50000.0)
    assert decoder.rope_pairs == "adjacent"
    assert math.isclose(decoder.norm_eps, 1e-5, rel_tol=1e-6)


def test_every_tensor_is_used_once_with_its_shape():
    for name in ("tied", "untied"):
        gguf = tiny(name)
        decoder = decoder_of(gguf)
        matrices = [decoder.embedding, *(matrix for layer in decoder.matrices for matrix in layer.values())]
        if name == "untied":
            matrices.append(decoder.head)
        vectors = [decoder.final_norm, *(vector for layer in decoder.vectors for vector in layer.values())]
        sources = [source for part in (*matrices, *vectors) for source in part.sources]
        assert sorted(sources) == sorted(gguf.tensors)
        for matrix in matrices:
            shapes = [gguf.tensors[source].shape for source in matrix.sources]
            assert sum(rows for rows, _ in shapes) == matrix.rows
            assert {columns for _, columns in shapes} == {matrix.columns}


def test_a_tied_head_is_the_embedding():
    assert decoder_of(tiny("tied")).head.sources == ("token_embd.weight",)
    assert decoder_of(tiny("untied")).head.sources == ("output.weight",)


def test_what_may_be_left_out():
    gguf = changed(tiny("tied"), attention__head_count_kv=None, attention__key_length=None, rope__freq_base=None)
    decoder = decoder_of(gguf)
    assert (decoder.kv_heads, decoder.head_size, decoder.rope_base) == (3, 32, 10000.0)


@pytest.mark.parametrize(
    "metadata",
    [
        {"embedding_length": None},
        {"embedding_length": "96"},
        {"block_count": 0},
        {"feed_forward_length": 161},
        {"embedding_length": 100},
        {"attention__head_count_kv": 2},
        {"attention__layer_norm_rms_epsilon": None},
        {"context_length": True},
    ],
)
def test_sizes_that_make_no_sense(metadata):
    with pytest.raises(ModelFileError):
        decoder_of(changed(tiny("tied"), **metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"rope__freq_base": 0.0},
        {"rope__freq_base": math.nan},
        {"attention__layer_norm_rms_epsilon": math.inf},
        {"attention__layer_norm_rms_epsilon": -1.0},
        {"block_count": 1 << 40},
        {"attention__head_count": 1 << 60, "attention__key_length": None, "attention__value_length": None},
        {"attention__key_length": 12, "attention__value_length": 12, "attention__head_count": 8},
    ],
)
def test_numbers_that_no_kernel_takes(metadata):
    with pytest.raises(ModelFileError):
        decoder_of(changed(tiny("tied"), **metadata))


def test_what_is_not_built():
    with pytest.raises(UnknownModelError, match="RoPE"):
        decoder_of(changed(tiny("tied"), rope__scaling__type="linear"))
    gguf = tiny("tied")
    factors = TensorInfo("rope_freqs.weight", (16,), "F32", 0, 64)
    with pytest.raises(UnknownModelError, match="RoPE"):
        decoder_of(replace(gguf, tensors=gguf.tensors | {factors.name: factors}))
    with pytest.raises(UnknownModelError, match="values"):
        decoder_of(changed(tiny("tied"), attention__value_length=64))
    with pytest.raises(UnknownModelError, match="part of each head"):
        decoder_of(changed(tiny("tied"), rope__dimension_count=16))
    experts = TensorInfo("blk.0.ffn_gate_exps.weight", (8, 96, 96), "Q4_1", 0, 46080)
    with pytest.raises(UnknownModelError, match="blk.0.ffn_gate_exps.weight"):
        decoder_of(replace(gguf, tensors=gguf.tensors | {experts.name: experts}))
    assert decoder_of(changed(tiny("tied"), rope__scaling__type="none"))
    for name in ("mamba", ["llama"], None):
        with pytest.raises(UnknownModelError, match="architecture.*llama, qwen2"):
            decoder_of(GGUF(3, {"general.architecture": name}, {}))


def test_varied_ids_are_tokens_that_repeat_late():
    model = decoder_of(tiny("tied"))
    ids = model.varied_ids(model.vocabulary + 1)
    assert sorted(ids[:-2]) == list(range(1, model.vocabulary)) and ids[-2:] == ids[:2]
