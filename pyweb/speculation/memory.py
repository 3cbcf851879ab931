"""Session memory: the tokens of earlier replies, from which drafts may be copied. They never enter a prompt."""

import base64
from array import array
from collections.abc import Sequence

__all__ = ["MEMORY_TOKENS", "Memory"]

MEMORY_TOKENS = 32768


class Memory:
    """Replies one after the other, at most `MEMORY_TOKENS` tokens; the oldest go first."""

    def __init__(self, tokens: Sequence[int] = ()):
        self.tokens = array("I", tokens[-MEMORY_TOKENS:])

    def add(self, reply: Sequence[int]) -> None:
        """Remembers a reply."""
        self.tokens.extend(reply)
        del self.tokens[:-MEMORY_TOKENS]

    def forget(self) -> None:
        """Erases everything."""
        del self.tokens[:]

    def to_text(self) -> str:
        """The tokens as text for a store."""
        return base64.b64encode(self.tokens.tobytes()).decode()

    @classmethod
    def from_text(cls, text: str) -> "Memory":
        """The memory that `to_text` wrote; an empty one where the text is damaged."""
        try:
            data = base64.b64decode(text, validate=True)
            return cls(array("I", data[: len(data) // 4 * 4]))
        except ValueError:
            return cls()
