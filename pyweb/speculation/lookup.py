"""Prompt lookup: copy what followed the latest occurrence of the longest matching suffix (the simplest baseline)."""

from collections.abc import Sequence

import numpy as np

from pyweb.speculation.scan import TokenBuffer
from pyweb.speculation.tree import MAX_DEPTH, Tree
from pyweb.speculation.trie import MAX_ORDER

__all__ = ["PromptLookup"]


class PromptLookup:
    """Drafts one chain of tokens (Saxena, "Prompt Lookup Decoding", 2023)."""

    def __init__(self, memory: Sequence[int] = ()):
        self._buffer = TokenBuffer(memory)

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens."""
        self._buffer.extend(tokens)

    def draft(self, nodes: int) -> Tree:
        """The chain of up to `nodes` - 1 tokens; among the longest matches the latest."""
        places, lengths = self._buffer.matches(MAX_ORDER)
        chain: list[int] = []
        if len(places):
            best = places[np.flatnonzero(lengths == lengths.max())[-1]]
            chain = self._buffer.continuation(int(best), min(nodes - 1, MAX_DEPTH))
        return Tree([int(self._buffer.tokens[-1]), *chain], [*range(-1, len(chain))])
