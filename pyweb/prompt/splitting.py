"""How byte-level tokenizers cut text into words before they merge bytes, by `tokenizer.ggml.pre`.

The names are llama.cpp's (`src/llama-vocab.cpp`); the steps are those of the original `tokenizer.json` files.
"""

from dataclasses import dataclass

from pyweb.errors import UnknownModelError

__all__ = ["SPLITTINGS", "Splitting", "pre_tokenizer"]

_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA = rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{_WORDS}|\p{{N}}{{1,3}}|{_REST}"
_QWEN = rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{_WORDS}|\p{{N}}|{_REST}"

_GPT_2 = frozenset(("default", "gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion"))
_DIGITS = frozenset(("smollm", "starcoder", "refact", "command-r", "codeshell"))
_LLAMA_3 = frozenset(("llama-bpe", "llama3", "llama-v3", "falcon3"))
_QWEN_2 = frozenset(("qwen2", "deepseek-r1-qwen"))
SPLITTINGS = _GPT_2 | _DIGITS | _LLAMA_3 | _QWEN_2


@dataclass(frozen=True)
class Splitting:
    """Parts of a `tokenizer.json`; `ignore_merges` keeps a word whole that is a token."""

    normalizer: dict | None
    steps: dict
    ignore_merges: bool = False


def pre_tokenizer(name: str, add_space_prefix: bool) -> Splitting:
    """The splitting that a file names.

    Raises:
        UnknownModelError: a name that we don't know; its tokens would silently be other ones.
    """
    words = _byte_level(add_space_prefix, use_regex=True)
    if name in _GPT_2:
        return Splitting(None, words)
    if name in _DIGITS:
        return Splitting(None, _sequence({"type": "Digits", "individual_digits": True}, words))
    if name in _LLAMA_3:
        return Splitting(None, _by_pattern(_LLAMA, add_space_prefix), ignore_merges=True)
    if name in _QWEN_2:
        return Splitting({"type": "NFC"}, _by_pattern(_QWEN, add_space_prefix))
    raise UnknownModelError(
        f"The tokenizer's word splitting {name!r:.60} is unknown.", "Choose another model."
    )


def _byte_level(add_space_prefix: bool, use_regex: bool) -> dict:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_space_prefix,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _sequence(*steps: dict) -> dict:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _by_pattern(pattern: str, add_space_prefix: bool) -> dict:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return _sequence(split, _byte_level(add_space_prefix, use_regex=False))
