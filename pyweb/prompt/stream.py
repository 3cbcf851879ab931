"""Text out of tokens as they come, in whole characters."""

from collections.abc import Callable, Iterable, Sequence

__all__ = ["TextStream"]

_BROKEN = "\ufffd"
# A character has at most four bytes, so at most four tokens; more pending ones hold bytes that are no UTF-8.
_LONGEST_PENDING = 8


class TextStream:
    """Decodes ids a few at a time; what comes out, joined, is `decode` of all ids.

    A token can end in the middle of a character: it waits for the next one. Some decoders treat the
    start of a text specially (they drop a leading space), so every later piece is decoded behind the
    reply's first words, whose text is then cut off.

    Args:
        decode: ids -> text, with U+FFFD for bytes that are no UTF-8 (yet).
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]):
        self._decode = decode
        self._anchor: list[int] = []
        self._anchor_text = ""
        self._pending: list[int] = []

    def push(self, ids: Iterable[int]) -> str:
        """Take the next ids; returns the text that has become certain, often empty."""
        return "".join([self._push_one(number) for number in ids])

    def finish(self) -> str:
        """The text still held back, with U+FFFD for a character that was never completed."""
        rest = self._text(self._pending)
        self._pending = []
        return rest

    def _push_one(self, number: int) -> str:
        self._pending.append(number)
        text = self._text(self._pending)
        if not text.endswith(_BROKEN) and (text or self._anchor):
            if not self._anchor:
                self._anchor, self._anchor_text = self._pending, text
            self._pending = []
            return text
        # Only tokens that are no text by themselves count: an empty one may stand between two halves of a character.
        if sum(_BROKEN in self._decode([held]) for held in self._pending) > _LONGEST_PENDING:
            return self._give_up_on_broken(text)
        return ""

    def _give_up_on_broken(self, text: str) -> str:
        """Let go of bytes that no later token can complete: up to the last cut that changes nothing."""
        for cut in range(len(self._pending) - 1, 0, -1):
            head, tail = self._pending[:cut], self._pending[cut:]
            head_text = self._text(head)
            if head_text and head_text + self._text(tail) == text:
                self._pending = tail
                return head_text
        return ""

    def _text(self, ids: list[int]) -> str:
        return self._decode(self._anchor + ids)[len(self._anchor_text) :]
