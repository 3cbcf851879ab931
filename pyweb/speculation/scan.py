"""Earlier places where the sequence's current suffix occurred, found by a scan of the whole buffer."""

from collections.abc import Sequence

import numpy as np

__all__ = ["TokenBuffer"]


class TokenBuffer:
    """Memory, then prompt and reply, in one array: what the scan on the GPU reads.

    Attributes:
        start: position where the prompt begins, the memory's length.
        length: tokens in the buffer.
    """

    def __init__(self, memory: Sequence[int] = ()):
        self.start = self.length = 0
        self._data = np.empty(len(memory) + 2048, np.int32)
        self.extend(memory)
        self.start = self.length

    @property
    def tokens(self) -> np.ndarray:
        """int32[length], a view."""
        return self._data[: self.length]

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends to the reply."""
        end = self.length + len(tokens)
        if end > len(self._data):
            self._data = np.concatenate([self.tokens, np.empty(end, np.int32)])
        self._data[self.length : end] = tokens
        self.length = end

    def matches(self, longest: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions p, in order, whose tokens before p equal the sequence's last 1 to `longest` tokens, and how many.

        Neither a match nor what follows it crosses from memory to prompt.
        """
        tokens, end = self.tokens, self.length
        if end == self.start:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places = np.flatnonzero(tokens[: end - 1] == tokens[end - 1]) + 1
        places = places[places != self.start]
        lengths = np.ones(len(places), np.int64)
        first = np.where(places > self.start, self.start, 0)
        alive = np.arange(len(places))
        for back in range(1, min(longest, end - self.start)):
            at = places[alive] - 1 - back
            inside = at >= first[alive]
            alive, at = alive[inside], at[inside]
            alive = alive[tokens[at] == tokens[end - 1 - back]]
            if not len(alive):
                break
            lengths[alive] += 1
        return places, lengths

    def continuation(self, place: int, longest: int) -> list[int]:
        """Up to `longest` tokens from `place` on, within its region."""
        end = self.start if place < self.start else self.length
        return self._data[place : min(place + longest, end)].tolist()
