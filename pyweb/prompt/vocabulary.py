"""Turn the vocabulary of a GGUF file into a Hugging Face `tokenizer.json`, and name its special tokens.

The metadata keys are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Two kinds
are known: byte-level BPE ("gpt2"), whose merges are in the file, and SentencePiece BPE ("llama"), whose
merges follow from the scores of the pieces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.prompt.splitting import pre_tokenizer

__all__ = ["Vocabulary", "bos_id", "named_specials", "special_ids", "stop_ids", "tokenizer_json", "vocabulary"]

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_SPECIAL_NAMES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator"}
_STOP_KEYS = ("eos", "eot", "eom")
# Files often name only one of the tokens that end a turn, so those of the usual chat formats count as well.
_STOP_TEXTS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "</s>")


@dataclass(frozen=True)
class Vocabulary:
    """What a tokenizer is opened with: the contents of two `tokenizer.json`, with and without special tokens.

    `special_ids` are text -> id of the tokens that only `trusted` knows, `bos_id` the token that has to begin every
    prompt, where there is one.
    """

    trusted: dict
    untrusted: dict
    special_ids: Mapping[str, int]
    bos_id: int | None = None


def vocabulary(metadata: Mapping[str, object]) -> Vocabulary:
    """The vocabulary that a GGUF's metadata carries.

    Raises:
        UnknownModelError, ModelFileError: as `tokenizer_json`.
    """
    contents = [tokenizer_json(metadata, specials) for specials in (True, False)]
    return Vocabulary(*contents, special_ids(metadata), bos_id(metadata))


def tokenizer_json(metadata: Mapping[str, object], specials: bool = True) -> dict:
    """Build the content of a `tokenizer.json`.

    Args:
        metadata: a GGUF's.
        specials: False builds the tokenizer for untrusted text, in which the text of
            a special token is text: such a token can't come out, whatever goes in.

    Returns:
        What `tokenizers.Tokenizer.from_str` takes as JSON. It adds no beginning-of-sequence token.

    Raises:
        UnknownModelError: a kind of tokenizer that we can't build.
        ModelFileError: the vocabulary contradicts itself.
    """
    kind = metadata.get("tokenizer.ggml.model")
    tokens, types = _tokens(metadata), _types(metadata)
    if kind == "gpt2":
        parts = _byte_level(metadata, tokens)
    elif kind == "llama":
        parts = _sentence_piece(metadata, tokens, types)
    else:
        raise UnknownModelError(f"The tokenizer kind {kind!r:.60} is not supported.", "Choose another model.")
    added = _added(tokens, types)
    if not specials:
        withheld = set(special_ids(metadata))
        added = [token for token in added if token["content"] not in withheld]
        _withhold(parts["model"], withheld, tokens, types)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **parts}


def special_ids(metadata: Mapping[str, object]) -> dict[str, int]:
    """The tokens that untrusted text must not be able to write: text -> id.

    Control tokens, and the user-defined ones that aren't white space (`<tool_call>` is one of them;
    runs of line breaks are harmless, and text is encoded with them).
    """
    tokens, types = _tokens(metadata), _types(metadata)
    return {
        token: number
        for number, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if token and (kind in (_UNKNOWN, _CONTROL) or (kind == _USER_DEFINED and not token.isspace()))
    }


def named_specials(metadata: Mapping[str, object]) -> dict[str, str]:
    """The special tokens that a chat template may use by name: `{"bos_token": "<s>", ...}`."""
    tokens = _tokens(metadata)
    found = {name: _id(metadata, key, tokens) for name, key in _SPECIAL_NAMES.items()}
    return {f"{name}_token": tokens[number] for name, number in found.items() if number is not None}


def bos_id(metadata: Mapping[str, object]) -> int | None:
    """The token that the model wants before every text, or None where it wants none."""
    by_default = metadata.get("tokenizer.ggml.model") == "llama" or _pre(metadata) == "llama-bpe"
    if not metadata.get("tokenizer.ggml.add_bos_token", by_default):
        return None
    return _id(metadata, "bos", _tokens(metadata))


def stop_ids(metadata: Mapping[str, object]) -> list[int]:
    """The tokens that end a reply, in ascending order."""
    tokens, specials = _tokens(metadata), special_ids(metadata)
    named = {_id(metadata, key, tokens) for key in _STOP_KEYS} - {None}
    return sorted(named | {specials[text] for text in _STOP_TEXTS if text in specials})


def _tokens(metadata) -> list[str]:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not isinstance(tokens[0], str):
        raise ModelFileError("The file has no vocabulary.")
    return tokens


def _types(metadata) -> list[int]:
    types = metadata.get("tokenizer.ggml.token_type")
    if types is None:
        return [_NORMAL] * len(_tokens(metadata))
    return _as_long_as_the_vocabulary(metadata, types, int, "token types")


def _as_long_as_the_vocabulary(metadata, values, kind, what) -> list:
    if not isinstance(values, list) or len(values) != len(_tokens(metadata)) or type(values[0]) is not kind:
        raise ModelFileError(f"The file's {what} don't fit its vocabulary.")
    return values


def _id(metadata, key: str, tokens: list[str]) -> int | None:
    number = metadata.get(f"tokenizer.ggml.{key}_token_id")
    if number is None:
        return None
    if type(number) is not int or not 0 <= number < len(tokens):
        raise ModelFileError(f"The {key} token {number!r:.40} is not in the vocabulary.")
    return number


def _pre(metadata) -> str:
    return metadata.get("tokenizer.ggml.pre", "default")


def _added(tokens, types) -> list[dict]:
    """Entries for `added_tokens`: matched in the text before anything else, longest first."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [
        {"id": number, "content": tokens[number], **plain, "special": kind != _USER_DEFINED}
        for number, kind in enumerate(types)
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) and tokens[number]
    ]


def _withhold(model: dict, withheld: set[str], tokens, types):
    """Take special tokens out of a model's reach, but for the one that stands for unknown text."""
    kept = {tokens[number] for number, kind in enumerate(types) if kind == _UNKNOWN}
    for token in withheld - kept:
        model["vocab"].pop(token, None)
    model["merges"] = [pair for pair in model["merges"] if pair[0] + pair[1] not in withheld]


def _byte_level(metadata, tokens) -> dict:
    vocab = {token: number for number, token in enumerate(tokens)}
    splitting = pre_tokenizer(_pre(metadata), bool(metadata.get("tokenizer.ggml.add_space_prefix", False)))
    decoder = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": splitting.normalizer,
        "pre_tokenizer": splitting.steps,
        "post_processor": None,
        "decoder": decoder,
        "model": _bpe(vocab, _file_merges(metadata, vocab), ignore_merges=splitting.ignore_merges),
    }


def _file_merges(metadata, vocab) -> list[list[str]]:
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list) or not all(isinstance(merge, str) for merge in merges[:1]):
        raise ModelFileError("The file has a byte-level vocabulary without merges.")
    pairs = [merge.split(" ") for merge in merges]
    for pair in pairs:
        if len(pair) != 2 or pair[0] not in vocab or pair[1] not in vocab or pair[0] + pair[1] not in vocab:
            raise ModelFileError(f"The merge {' '.join(pair)!r:.60} is not in the vocabulary.")
    return pairs


def _sentence_piece(metadata, tokens, types) -> dict:
    """As `transformers` converts a Llama tokenizer: spaces become U+2581, unknown characters bytes."""
    prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    first = [{"type": "Prepend", "prepend": "▁"}] if prefix else []
    last = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *last]
    vocab = {token: number for number, token in enumerate(tokens)}
    unknown = next((tokens[number] for number, kind in enumerate(types) if kind == _UNKNOWN), None)
    model = _bpe(vocab, _score_merges(metadata, tokens, types), unk_token=unknown, byte_fallback=True)
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*first, replace]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": model,
    }


def _score_merges(metadata, tokens, types) -> list[list[str]]:
    """Merges whose order gives SentencePiece's result: the better a piece's score, the earlier.

    Only normal pieces take part: no text can be merged into a control or byte token. The order among
    equals is that of `transformers` (`convert_slow_tokenizer.generate_merges`).
    """
    scores = metadata.get("tokenizer.ggml.scores")
    scores = _as_long_as_the_vocabulary(metadata, scores, float, "token scores")
    ids = {token: n for n, token in enumerate(tokens) if types[n] == _NORMAL}
    merges = []
    for piece, number in ids.items():
        cuts = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        pairs = [pair for pair in cuts if pair[0] in ids and pair[1] in ids]
        pairs.sort(key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        merges += [(scores[number], len(left), len(right), left, right) for left, right in pairs]
    merges.sort(key=lambda merge: merge[:3], reverse=True)
    return [[left, right] for *_, left, right in merges]


def _bpe(vocab, merges, unk_token=None, byte_fallback=False, ignore_merges=False) -> dict:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk_token,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": unk_token is not None,
        "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges,
        "vocab": vocab,
        "merges": merges,
    }
