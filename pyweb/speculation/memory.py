"""Session memory: what earlier replies said, for the drafter alone."""

from collections.abc import Sequence

__all__ = ["MEMORY_TOKENS", "SessionMemory"]

# 32K tokens give 95% of the gain of an unlimited memory (paper, "Session Memory Size").
MEMORY_TOKENS = 32_768


class SessionMemory:
    """The last `capacity` tokens of earlier replies, oldest out first. It never enters the KV cache.

    Attributes:
        tokens: what is remembered, oldest first.
        total: tokens ever appended; an index that has seen fewer is behind.
        capacity: tokens kept at most.
    """

    def __init__(self, capacity: int = MEMORY_TOKENS):
        self.capacity = capacity
        self.tokens: list[int] = []
        self.total = 0

    def append(self, reply: Sequence[int]) -> None:
        """Remembers a finished reply."""
        self.total += len(reply)
        self.tokens.extend(reply)
        del self.tokens[: max(0, len(self.tokens) - self.capacity)]

    def forget(self) -> None:
        """Erases all of it."""
        self.tokens.clear()

    def newest(self, count: int) -> list[int]:
        """The last `count` tokens, or what is left of them."""
        return self.tokens[max(0, len(self.tokens) - count) :]
