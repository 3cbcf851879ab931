"""Ids against a tokenizer written independently, from the published patterns and merge rules."""

import unicodedata

import pytest

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.prompt import bos_id, named_specials, special_ids, stop_ids, tokenizer_json

CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def kind(letter):
    """L, N, space or other, as the patterns tell them apart."""
    if letter.isspace():
        return " "
    category = unicodedata.category(letter)[0]
    return category if category in "LN" else "."


def run(text, start, kinds, longest=None):
    end = start
    while end < len(text) and kind(text[end]) in kinds and (longest is None or end - start < longest):
        end += 1
    return end


def contraction(text, start, any_case):
    word = text[start : start + 3]
    word = word.lower() if any_case else word
    found = [len(suffix) for suffix in CONTRACTIONS if word.startswith(suffix)]
    return start + found[0] if found else start


def white_space(text, start):
    """`\\s+(?!\\S)|\\s+`: a run leaves its last character to the word behind it."""
    end = run(text, start, " ")
    return end - 1 if end < len(text) and end - start > 1 else end


def gpt_2_word(text, start):
    end = contraction(text, start, any_case=False)
    if end > start:
        return end
    word = start + 1 if text[start] == " " and start + 1 < len(text) else start
    for kinds in "LN.":
        if kind(text[word]) == kinds:
            return run(text, word, kinds)
    return white_space(text, start)


def llama_word(text, start, digits):
    end = contraction(text, start, any_case=True)
    if end > start:
        return end
    word = start + 1 if kind(text[start]) not in "LN" and text[start] not in "\r\n" else start
    if word < len(text) and kind(text[word]) == "L":
        return run(text, word, "L")
    if kind(text[start]) == "N":
        return run(text, start, "N", digits)
    word = start + 1 if text[start] == " " else start
    if word < len(text) and kind(text[word]) == ".":
        end = run(text, word, ".")
        while end < len(text) and text[end] in "\r\n":
            end += 1
        return end
    space = text[start : run(text, start, " ")]
    last = max(space.rfind("\r"), space.rfind("\n"))
    return start + last + 1 if last >= 0 else white_space(text, start)


def cut(text, word):
    start = 0
    while start < len(text):
        end = word(text, start)
        yield text[start:end]
        start = end


def split_digits(text):
    piece = ""
    for letter in text:
        if kind(letter) == "N":
            yield from (piece, letter)
            piece = ""
        else:
            piece += letter
    yield piece


def smollm_words(text):
    return [word for piece in split_digits(text) for word in cut(piece, gpt_2_word)]


SPLITTINGS = {
    "smollm": smollm_words,
    "gpt-2": lambda text: cut(text, gpt_2_word),
    "default": lambda text: cut(text, gpt_2_word),
    "llama-bpe": lambda text: cut(text, lambda text, start: llama_word(text, start, 3)),
    "qwen2": lambda text: cut(unicodedata.normalize("NFC", text), lambda *at: llama_word(*at, 1)),
}


def byte_letters():
    """GPT-2's printable stand-in for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(rest)}


LETTERS = byte_letters()


def merge(pieces, rank):
    """Apply the merge of the best rank, leftmost first, until none applies."""
    pieces = list(pieces)
    while True:
        ranked = [
            (rank(left, right), i) for i, (left, right) in enumerate(zip(pieces, pieces[1:], strict=False))
        ]
        best = min((pair for pair in ranked if pair[0] is not None), default=None)
        if best is None:
            return pieces
        i = best[1]
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


class ByteLevelReference:
    def __init__(self, metadata, words, whole_words):
        self.ids = {token: number for number, token in enumerate(metadata["tokenizer.ggml.tokens"])}
        self.ranks = {tuple(pair.split()): i for i, pair in enumerate(metadata["tokenizer.ggml.merges"])}
        self.words, self.whole_words = words, whole_words

    def encode(self, text):
        ids = []
        for word in self.words(text):
            word = "".join(LETTERS[byte] for byte in word.encode())
            if self.whole_words and word in self.ids:
                ids.append(self.ids[word])
            else:
                pieces = merge(word, lambda *pair: self.ranks.get(pair))
                ids += [self.ids[piece] for piece in pieces if piece in self.ids]
        return ids


@pytest.mark.parametrize("name", SPLITTINGS)
@pytest.mark.parametrize("specials", [True, False])
def test_byte_level_ids_equal_the_reference(name, specials, metadata, native, texts):
    changed = {**metadata, "tokenizer.ggml.pre": name}
    backend = native(tokenizer_json(changed, specials))
    reference = ByteLevelReference(changed, SPLITTINGS[name], whole_words=name == "llama-bpe")
    for text in texts:
        assert backend.encode(text) == reference.encode(text), text


def test_the_real_splitting_of_the_embedded_model(metadata):
    steps = tokenizer_json(metadata)["pre_tokenizer"]["pretokenizers"]
    assert steps[0] == {"type": "Digits", "individual_digits": True}
    assert steps[1]["type"] == "ByteLevel"
    assert not steps[1]["add_prefix_space"] and steps[1]["use_regex"]


def test_text_comes_back(tokenizer, texts):
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.decode(tokenizer.encode_untrusted(text)) == text


def test_every_special_token_is_one_id_for_us_and_text_for_others(tokenizer, metadata):
    assert special_ids(metadata)["<|im_end|>"] == 2 and len(special_ids(metadata)) == 17
    for text, number in special_ids(metadata).items():
        assert tokenizer.encode(text) == [number]
        untrusted = tokenizer.encode_untrusted(text)
        assert not set(untrusted) & set(special_ids(metadata).values())
        assert tokenizer.decode(untrusted) == text


def test_a_lone_surrogate_is_replaced(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


def test_the_embedded_models_named_and_stop_tokens(metadata):
    assert named_specials(metadata)["eos_token"] == "<|im_end|>"
    assert bos_id(metadata) is None
    assert stop_ids(metadata) == [0, 2]


def byte_level(**more):
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": ["a", "b", "ab", "<tool>", "\n\n", "<end>", "Ċ", "Ġ"],
        "tokenizer.ggml.token_type": [1, 1, 1, 4, 4, 3, 1, 1],
        "tokenizer.ggml.merges": ["a b"],
        **{f"tokenizer.ggml.{key}": value for key, value in more.items()},
    }


def test_user_defined_tokens_are_text_for_others_unless_white_space(native):
    trusted, untrusted = (native(tokenizer_json(byte_level(), specials)) for specials in (True, False))
    assert trusted.encode("a<tool>\n\nb<end>") == [0, 3, 4, 1, 5]
    assert untrusted.encode("a\n\nb") == [0, 4, 1]
    assert not {3, 5} & set(untrusted.encode("<tool><end>"))


def test_a_special_token_can_not_be_merged_from_text(native):
    changed = byte_level(token_type=[1, 1, 3, 4, 4, 3, 1, 1])
    assert native(tokenizer_json(changed, specials=False)).encode("ab") == [0, 1]


def test_add_space_prefix_is_respected(native):
    assert native(tokenizer_json(byte_level(add_space_prefix=True))).encode("ab") == [7, 2]
    assert native(tokenizer_json(byte_level())).encode("ab") == [2]


def test_add_bos_token_is_respected():
    assert bos_id(byte_level(bos_token_id=5)) is None
    assert bos_id(byte_level(bos_token_id=5, add_bos_token=True)) == 5
    assert bos_id(byte_level(bos_token_id=5, pre="llama-bpe")) == 5
    assert bos_id(byte_level(bos_token_id=5, pre="llama-bpe", add_bos_token=False)) is None


@pytest.mark.parametrize(
    ("change", "what"),
    [({"model": "t5"}, "'t5'"), ({"model": None}, "None"), ({"pre": "deepseek-llm"}, "'deepseek-llm'")],
)
def test_an_unknown_kind_is_named(change, what):
    with pytest.raises(UnknownModelError, match=what):
        tokenizer_json(byte_level(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": None},
        {"tokens": []},
        {"tokens": [1, 2]},
        {"token_type": [1]},
        {"token_type": ["a"] * 8},
        {"merges": None},
        {"merges": [["a", "b"]]},
        {"merges": ["ab"]},
        {"merges": ["b a"]},
        {"merges": ["a c"]},
    ],
)
def test_a_vocabulary_that_contradicts_itself(change):
    with pytest.raises(ModelFileError):
        tokenizer_json(byte_level(**change))


def test_a_special_id_outside_the_vocabulary():
    with pytest.raises(ModelFileError, match="99"):
        stop_ids(byte_level(eos_token_id=99))


def sentence_piece(corpus="▁the▁theme▁then▁hat▁that▁at▁e▁eat▁tea▁▁the", count=24, **more):
    """A SentencePiece vocabulary grown from a corpus: the earlier a piece was found, the better its score."""
    letters = sorted(set(corpus))
    found, pieces = list(letters), list(corpus)
    for _ in range(count):
        pairs = {}
        for left, right in zip(pieces, pieces[1:], strict=False):
            pairs[left, right] = pairs.get((left, right), 0) + 1
        best = max(sorted(pairs), key=pairs.get)
        found.append("".join(best))
        pieces = merge(pieces, lambda *pair, best=best: 0 if pair == best else None)
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *fallback, *dict.fromkeys(found)]
    normal = len(tokens) - 259
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * normal,
        "tokenizer.ggml.scores": [0.0] * 259 + [-float(i) for i in range(normal)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **more,
    }


class SentencePieceReference:
    """Merge the pair whose union has the best score; characters without a piece become bytes."""

    def __init__(self, metadata):
        tokens = metadata["tokenizer.ggml.tokens"]
        self.ids = {token: number for number, token in enumerate(tokens)}
        scores = dict(zip(tokens, metadata["tokenizer.ggml.scores"], strict=True))
        normal = [t for t, of in zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True) if of == 1]
        self.ranks = {token: -scores[token] for token in normal}

    def encode(self, text):
        pieces = merge(text.replace(" ", "▁"), lambda left, right: self.ranks.get(left + right))
        ids = []
        for piece in pieces:
            known = [self.ids[piece]] if piece in self.ranks else []
            ids += known or [self.ids[f"<0x{byte:02X}>"] for byte in piece.encode()]
        return ids


WORDS = ("the theme then", "that hat  at the tea", "  eat", "é the 🙂 x\n", "<s>the</s>", "t<0x41>", "")


@pytest.mark.parametrize("text", WORDS)
def test_sentence_piece_ids_equal_the_reference(text, native):
    metadata = sentence_piece(**{"tokenizer.ggml.add_space_prefix": False})
    reference = SentencePieceReference(metadata)
    backend = native(tokenizer_json(metadata, specials=False))
    assert backend.encode(text) == reference.encode(text)
    assert backend.decode(backend.encode(text)) == text


def test_sentence_piece_adds_a_space_and_takes_it_off(native):
    metadata = sentence_piece()
    backend = native(tokenizer_json(metadata))
    assert backend.encode("the tea") == SentencePieceReference(metadata).encode(" the tea")
    assert backend.decode(backend.encode("the tea")) == "the tea"


def test_sentence_piece_specials(native):
    metadata = sentence_piece(**{"tokenizer.ggml.add_space_prefix": False})
    ids = native(tokenizer_json(metadata)).encode("<s>the</s>")
    assert (ids[0], ids[-1]) == (1, 2) and len(ids) > 2
    assert special_ids(metadata) == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert bos_id(metadata) == 1 and stop_ids(metadata) == [2]


def test_sentence_piece_without_scores():
    with pytest.raises(ModelFileError, match="scores"):
        tokenizer_json(sentence_piece(**{"tokenizer.ggml.scores": None}))
