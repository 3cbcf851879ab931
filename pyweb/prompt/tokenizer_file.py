"""A `tokenizer.json` of Hugging Face's `tokenizers`, made safe for text of anybody.

Format: https://huggingface.co/docs/tokenizers. It takes the place of a model file's own vocabulary.
"""

import json
from collections.abc import Mapping
from copy import deepcopy

from pyweb.errors import ModelFileError
from pyweb.prompt.vocabulary import Vocabulary

__all__ = ["vocabulary_of_file"]


def vocabulary_of_file(content: str | bytes, bos_id: int | None = None, size: int | None = None) -> Vocabulary:
    """The two tokenizers of a file: one that knows its special tokens, and one that doesn't.

    Args:
        content: the file's.
        bos_id: the token that has to begin every prompt, which such a file doesn't say.
        size: tokens of the model.

    Raises:
        ModelFileError: it is no such file, or has a token that the model lacks.
    """
    try:
        trusted = json.loads(content)
        added = trusted.get("added_tokens") or []
        # What is added around a text is the template's business; lengths are the engine's.
        trusted |= {"post_processor": None, "truncation": None, "padding": None, "added_tokens": added}
        special = {
            token["content"]: int(token["id"]) for token in added if token["special"] or not token["content"].isspace()
        }
        untrusted = deepcopy(trusted)
        untrusted["added_tokens"] = [token for token in added if token["content"] not in special]
        _withhold(untrusted["model"], special.keys())
        largest = max([*special.values(), *_ids(trusted["model"])])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"The file is no tokenizer.json ({type(error).__name__}: {str(error)[:80]}).") from None
    if size is not None and largest >= size:
        raise ModelFileError(
            f"The tokenizer.json has the token {largest}, the model has {size} tokens.", "Give the model's own file."
        )
    return Vocabulary(trusted, untrusted, special, bos_id)


def _ids(model: Mapping) -> list[int]:
    vocab = model["vocab"]
    return list(vocab.values()) if isinstance(vocab, dict) else [len(vocab) - 1]


def _withhold(model: dict, special) -> None:
    """Takes special tokens out of a model's reach, but for the one that stands for unknown text."""
    vocab, unknown = model["vocab"], model.get("unk_token")
    withheld = set(special) - {unknown}
    if isinstance(vocab, dict):
        for text in withheld:
            vocab.pop(text, None)
    else:  # Unigram: the id is the position, so the piece is made one that no text holds
        keep = model.get("unk_id")
        for number, (text, score) in enumerate(vocab):
            if text in withheld and number != keep:
                vocab[number] = [f"\U0010fffd{number}", score]
    if model.get("merges"):
        model["merges"] = [merge for merge in model["merges"] if _joined(merge) not in withheld]


def _joined(merge: str | list[str]) -> str:
    return "".join(merge.split(" ", 1) if isinstance(merge, str) else merge)
