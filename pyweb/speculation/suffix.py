"""Suffix-tree drafting: the followers of the longest known context, weighted by how often they followed it."""

from collections.abc import Sequence

from pyweb.speculation.tree import Child, Tree, grow
from pyweb.speculation.trie import Context, ContextTrie, MemoryIndex

__all__ = ["SuffixDrafter", "SuffixTree"]


def _longest(contexts: Sequence[Context | None]) -> tuple[int, Context | None]:
    for order in range(len(contexts) - 1, 0, -1):
        context = contexts[order]
        if context is not None and context.count:
            return order, context
    return 0, None


class SuffixDrafter:
    """Drafts a tree from suffix counts of the request and of earlier replies (Oliaro et al., "SuffixDecoding", 2024).

    Each node is expanded by its longest context alone, the request's own where both are equally long.
    """

    def __init__(self, memory: ContextTrie):
        self._tries = [ContextTrie(), memory]
        self._remembered: list[Context | None] = []
        self._last = -1

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens."""
        own, memory = self._tries
        for token in tokens:
            own.add(token)
        if self._remembered:
            for token in tokens:
                self._remembered = memory.follow(self._remembered, token)
        else:
            self._remembered = memory.locate(tokens)
        self._last = tokens[-1]

    def draft(self, nodes: int) -> Tree:
        """The tree of the greatest estimated path frequencies."""
        return grow(self._last, None, 1.0, self._expand, nodes)

    def _expand(self, state, token: int, weight: float, depth: int, floor: float) -> list[Child]:
        contexts = [self._tries[0].current, self._remembered]
        if depth:
            contexts = [trie.follow(own, token) for trie, own in zip(self._tries, state, strict=True)]
        (order, context), (other_order, other) = map(_longest, contexts)
        if other_order > order:
            context = other
        if context is None:
            return []
        unit = weight / context.count
        return [(unit * f.seen, tie, t, contexts) for tie, (t, f) in enumerate(context.followers.items())]


class SuffixTree:
    """Starts a `SuffixDrafter` for each request, with the memory indexed."""

    def __init__(self):
        self._index = MemoryIndex()

    def __call__(self, memory: Sequence[int] = ()) -> SuffixDrafter:
        return SuffixDrafter(self._index.update(memory))
