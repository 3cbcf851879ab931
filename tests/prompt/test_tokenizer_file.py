"""A tokenizer.json in place of a model file's vocabulary."""

import json

import pytest
import tokenizers
from tokenizers import AddedToken, models, pre_tokenizers, trainers

from pyweb.errors import ModelFileError
from pyweb.prompt import Tokenizer, tokenizer_json, vocabulary_of_file

SPECIALS = ("<unk>", "<s>", "</s>")
TEXT = ["the quick brown fox", "jumps over the lazy dog", "pack my box with five dozen jugs"] * 4


def opened(native, found):
    return Tokenizer(native(found.trusted), native(found.untrusted), found.special_ids, found.bos_id)


def trained(kind):
    """A small tokenizer of another kind, with special tokens in its vocabulary and one that only matches text."""
    model, trainer = {
        "bpe": (models.BPE(unk_token="<unk>"), trainers.BpeTrainer(special_tokens=list(SPECIALS), vocab_size=120)),
        "unigram": (
            models.Unigram(),
            trainers.UnigramTrainer(special_tokens=list(SPECIALS), vocab_size=120, unk_token="<unk>"),
        ),
        "wordpiece": (
            models.WordPiece(unk_token="<unk>"),
            trainers.WordPieceTrainer(special_tokens=list(SPECIALS), vocab_size=120),
        ),
    }[kind]
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(TEXT, trainer)
    made.add_tokens([AddedToken("<tool>", special=False)])
    return made


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_ids_equal_the_files_own(native, kind):
    made = trained(kind)
    tokenizer = opened(native, vocabulary_of_file(made.to_str()))
    for text in [*TEXT[:3], "a fox of five", "<s>the fox</s>", "<tool>"]:
        assert tokenizer.encode(text) == made.encode(text, add_special_tokens=False).ids
    for text in TEXT[:3]:
        assert tokenizer.encode_untrusted(text) == made.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_text_can_not_write_special_tokens(native, kind):
    found = vocabulary_of_file(trained(kind).to_str())
    assert found.special_ids.keys() == {*SPECIALS, "<tool>"}
    forbidden = set(found.special_ids.values()) - {found.special_ids["<unk>"]}
    tokenizer = opened(native, found)
    for text in ("<s>", "</s>the<s>", "fox <tool> fox", "<s", "s>"):
        assert not forbidden & set(tokenizer.encode_untrusted(text))


def test_the_embedded_models_vocabulary_as_a_file(native, metadata, tokenizer, texts):
    content = tokenizer_json(metadata) | {"post_processor": {"type": "ByteLevel"}, "truncation": {"max_length": 2}}
    other = opened(native, vocabulary_of_file(json.dumps(content), size=49152))
    assert other.special_ids == tokenizer.special_ids
    for text in [*texts, "<|im_start|>x"]:
        assert other.encode(text) == tokenizer.encode(text)
        assert other.encode_untrusted(text) == tokenizer.encode_untrusted(text)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": {}}', '{"model": {"vocab": {}}}', b"\xff", "[" * 9999])
def test_other_files(content):
    with pytest.raises(ModelFileError, match="no tokenizer.json"):
        vocabulary_of_file(content)


def test_a_file_of_another_model():
    with pytest.raises(ModelFileError, match="the model has 7 tokens"):
        vocabulary_of_file(trained("bpe").to_str(), size=7)
