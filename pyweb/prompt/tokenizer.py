"""Text to ids and back, with and without an eye for special tokens."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

__all__ = ["Backend", "Tokenizer"]


class Backend(Protocol):
    """What does the work: native `tokenizers` on a desktop, its wasm build in a browser."""

    def encode(self, text: str) -> Sequence[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class Tokenizer:
    """A model's tokenizer over two backends.

    Args:
        trusted: built with the special tokens, which it recognises in text.
        untrusted: built without them (`tokenizer_json(metadata, specials=False)`).
        special_ids: text -> id of the tokens that only `trusted` knows.
        bos_id: the token that has to begin every prompt, where there is one.
    """

    def __init__(
        self,
        trusted: Backend,
        untrusted: Backend,
        special_ids: Mapping[str, int],
        bos_id: int | None = None,
    ):
        self._trusted = trusted
        self._untrusted = untrusted
        self.special_ids = dict(special_ids)
        self.bos_id = bos_id

    def encode(self, text: str) -> list[int]:
        """Ids of a text of our own: special tokens in it become their ids. Nothing is added."""
        return list(self._trusted.encode(_well_formed(text)))

    def encode_untrusted(self, text: str) -> list[int]:
        """Ids of anybody's text: what looks like a special token is text. Nothing is added."""
        return list(self._untrusted.encode(_well_formed(text)))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens included; bytes that are no UTF-8 become U+FFFD."""
        return self._trusted.decode(list(ids))

    @cached_property
    def special_pattern(self) -> re.Pattern | None:
        """Matches a special token's text, the longest first; None where there are none."""
        texts = sorted(self.special_ids, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, texts))) if texts else None


def _well_formed(text: str) -> str:
    """Replace lone surrogates, which a page's text may hold and UTF-8 can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
