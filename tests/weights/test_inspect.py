import json

import pytest

from pyweb.weights.gguf import GGUF, TensorInfo, parse_gguf
from pyweb.weights.inspect import describe, format_description

KINDS = ("Q4_1", "Q8_0", "F32")


@pytest.fixture(scope="module")
def model(embedded_model):
    with open(embedded_model, "rb") as file:
        return parse_gguf(file.read(4 << 20), embedded_model.stat().st_size)


def tiny(**metadata):
    tensors = [
        TensorInfo("token_embd.weight", (8, 64), "Q8_0", 0, 544),
        TensorInfo("blk.0.attn_q.weight", (64, 64), "Q6_K", 544, 3360),
        TensorInfo("blk.0.attn_q.bias", (64,), "F32", 3904, 256),
        TensorInfo("blk.0.ffn_up.weight", (64, 64), "Q4_1", 4160, 2560),
        TensorInfo("output_norm.weight", (64,), "F32", 6720, 256),
        TensorInfo("output.weight", (8, 64), "Q8_0", 6976, 544),
        TensorInfo("rope_freqs.weight", (32,), "F32", 7520, 128),
    ]
    return GGUF(3, metadata, {info.name: info for info in tensors})


def test_the_embedded_model_runs(model):
    described = describe(model, ["llama"], KINDS)
    assert described["runs"] and described["missing"] == []
    assert described["parameters"] == 134_515_008
    assert (described["layers"], described["heads"], described["kv_heads"]) == (30, 9, 3)
    assert (described["head_size"], described["context"]) == (64, 8192)
    assert (described["tokenizer"], described["vocabulary"]) == ("gpt2", 49152)
    assert (described["licence"], described["template"]) == ("apache-2.0", True)
    assert list(described["quantization"]) == ["embedding", "attention", "ffn", "norms"]
    assert described["quantization"]["ffn"] == {"Q4_1": {"count": 90, "bytes": 49_766_400}}
    assert described["memory"]["kv_cache"] == 2 * 30 * 3 * 64 * 2 * 4096
    assert json.loads(json.dumps(described)) == described


def test_memory_counts_the_runtime_layouts(model):
    """Q4_1 and Q8_0 are kept as they are; a Q6_K block of 32 takes 36 bytes; Q3_K has no layout."""
    total = describe(model, ["llama"], KINDS)
    assert total["memory"]["weights"] == total["weight_bytes"]
    sizes = {"block_count": 1, "attention.head_count": 2, "embedding_length": 64}
    gguf = tiny(**{"general.architecture": "llama"} | {f"llama.{key}": value for key, value in sizes.items()})
    plain = 544 + 256 + 2560 + 256 + 544 + 128
    assert describe(gguf, ["llama"], KINDS)["memory"]["weights"] == plain + 64 * 2 * 36
    unknown = TensorInfo("blk.0.attn_q.weight", (64, 256), "Q3_K", 0, 64 * 110)
    gguf = GGUF(3, gguf.metadata, gguf.tensors | {unknown.name: unknown})
    described = describe(gguf, ["llama"], KINDS)
    assert described["memory"]["weights"] == plain + 64 * 110
    assert "Weights of type Q3_K are not supported." in described["missing"]


def test_memory_stops_at_the_models_own_context(model):
    assert describe(model, ["llama"], KINDS, context=1 << 20)["memory"]["context"] == 8192


def test_what_is_missing_is_said_in_sentences(model):
    described = describe(model, ["qwen2"], ["F32", "Q8_0"], tokenizers=["llama"])
    assert not described["runs"]
    assert described["missing"] == [
        "The architecture llama is not supported.",
        "Weights of type Q4_1 are not supported.",
        "The tokenizer kind gpt2 is not supported.",
    ]
    (sentence,) = describe(model, ["llama"], KINDS, splittings=["qwen2"])["missing"]
    assert sentence == "The tokenizer's word splitting smollm is not supported."


def test_tensors_fall_into_their_groups():
    groups = describe(tiny(), [], [])["quantization"]
    assert {group: sorted(kinds) for group, kinds in groups.items()} == {
        "embedding": ["Q8_0"],
        "attention": ["F32", "Q6_K"],
        "ffn": ["Q4_1"],
        "head": ["Q8_0"],
        "norms": ["F32"],
        "other": ["F32"],
    }


def test_a_file_that_says_nothing_is_described_all_the_same():
    described = describe(GGUF(3, {}, {}), ["llama"], KINDS)
    assert described["memory"] is None and described["parameters"] == 0
    assert "The file doesn't name its architecture." in described["missing"]
    assert "not said" in format_description(described)


def test_values_of_the_wrong_type_count_as_not_said():
    described = describe(
        tiny(
            **{
                "general.architecture": "llama",
                "general.name": 7,
                "llama.block_count": "many",
                "llama.attention.head_count": 0,
                "llama.embedding_length": -64,
                "tokenizer.ggml.tokens": "none",
            }
        ),
        ["llama"],
        KINDS,
    )
    assert described["name"] is None and described["layers"] is None and described["head_size"] is None
    assert described["vocabulary"] is None


def test_heads_given_for_each_layer_count_by_the_largest():
    described = describe(
        tiny(**{"general.architecture": "x", "x.attention.head_count_kv": [0, 2, 4]}), ["x"], KINDS
    )
    assert described["kv_heads"] == 4


def test_people_see_a_line_for_each_fact(model):
    text = format_description(describe(model, ["llama"], KINDS))
    assert "134,515,008" in text
    assert "Q4_1 x 90 (47.5 MiB)" in text
    assert "90.0 MiB cache at 4096 tokens" in text
    assert "runs here       yes" in text


def test_a_name_cannot_write_control_characters_to_the_terminal():
    described = describe(tiny(**{"general.name": "a\x1b[2Jb\nc"}), ["llama"], KINDS)
    assert "a?[2Jb?c" in format_description(described)
