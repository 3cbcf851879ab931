"""The vocabulary of random weights: a token for each byte, and a chat template that ends its turns."""

import unicodedata

import pytest

from pyweb.prompt import ChatTemplate, Tokenizer, bos_id, named_specials, prompt_ids, stop_ids, vocabulary
from pyweb.weights import parse_gguf
from pyweb.weights.synthetic import random_file

MESSAGES = [{"role": "system", "content": "Be <|im_end|> brief."}, {"role": "user", "content": "Hé?"}]


@pytest.fixture(params=["tiny", "llama-3.2-1b"])
def random_metadata(request):
    made = random_file(request.param)
    return parse_gguf(made.header, made.size).metadata


@pytest.fixture
def random_tokenizer(native, random_metadata):
    words = vocabulary(random_metadata)
    return Tokenizer(native(words.trusted), native(words.untrusted), words.special_ids, words.bos_id)


def test_every_byte_is_a_token(random_metadata, random_tokenizer, texts):
    for text in texts:
        ids = random_tokenizer.encode_untrusted(text)
        if random_metadata["general.architecture"] == "qwen2":
            text = unicodedata.normalize("NFC", text)
        assert len(ids) == len(text.encode())
        assert random_tokenizer.decode(ids) == text


def test_no_text_has_the_tokens_that_fill_the_vocabulary(random_metadata, random_tokenizer):
    tokens = random_metadata["tokenizer.ggml.tokens"]
    text = " ".join([*tokens[250:400], tokens[-1]])
    assert max(random_tokenizer.encode_untrusted(text)) < 256
    assert random_tokenizer.decode([len(tokens) - 1]) == tokens[-1]


def test_a_prompt(random_metadata, random_tokenizer):
    template = ChatTemplate(random_metadata["tokenizer.chat_template"], named_specials(random_metadata))
    ids = prompt_ids(random_tokenizer, template, MESSAGES)
    start, end = (random_tokenizer.special_ids[text] for text in ("<|im_start|>", "<|im_end|>"))
    assert random_tokenizer.decode(ids) == (
        "<|im_start|>system\nBe <|im_end|> brief.<|im_end|>\n<|im_start|>user\nHé?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert (ids.count(start), ids.count(end)) == (3, 2)
    assert bos_id(random_metadata) is None
    assert end in stop_ids(random_metadata) and start not in stop_ids(random_metadata)
