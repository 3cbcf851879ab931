"""Counts of what followed every context of up to 8 tokens, as a trie."""

from array import array
from collections.abc import Iterable, Sequence

__all__ = ["MAX_ORDER", "Context", "ContextTrie", "MemoryIndex"]

MAX_ORDER = 8


class Context:
    """A token sequence that occurred, and what came after it.

    Attributes:
        seen: times the sequence occurred.
        count: times a token was seen to follow it.
        last: the token that followed it last; -1 before there is one.
        followers: the sequences one token longer, by that token.
    """

    __slots__ = ("seen", "count", "last", "followers")

    def __init__(self):
        self.seen = 0
        self.count = 0
        self.last = -1
        self.followers: dict[int, Context] = {}


class ContextTrie:
    """All contexts of up to `order` tokens of a sequence.

    `current[k]` is the context of the sequence's last k tokens. A list of that kind, for any other place, is moved
    on by `follow`; None stands for a context that never occurred.
    """

    def __init__(self, order: int = MAX_ORDER):
        self.order = order
        self.root = Context()
        self.current: list[Context] = [self.root]

    def add(self, token: int) -> None:
        """Appends a token to the sequence."""
        moved = [self.root]
        for context in self.current:
            context.count += 1
            context.last = token
            follower = context.followers.get(token)
            if follower is None:
                follower = context.followers[token] = Context()
            follower.seen += 1
            moved.append(follower)
        self.current = moved[: self.order + 1]

    def remove(self, oldest: Iterable[int]) -> None:
        """Takes back the sequence's first token; `oldest` are its first `order` + 1 tokens."""
        context = self.root
        for token in oldest:
            follower = context.followers[token]
            context.count -= 1
            follower.seen -= 1
            if not follower.seen:
                del context.followers[token]
                return
            context = follower

    def follow(self, contexts: Sequence[Context | None], token: int) -> list[Context | None]:
        """The contexts one token further than `contexts`."""
        moved: list[Context | None] = [self.root]
        moved += [c.followers.get(token) if c is not None else None for c in contexts[: self.order]]
        return moved

    def locate(self, tokens: Sequence[int]) -> list[Context | None]:
        """The contexts at the end of `tokens`, which need not be part of the sequence."""
        contexts: list[Context | None] = [self.root]
        for token in tokens[-self.order :]:
            contexts = self.follow(contexts, token)
        return contexts


class MemoryIndex:
    """A context trie that keeps up with the session memory."""

    def __init__(self):
        self.trie = ContextTrie()
        self._tokens = array("I")

    def update(self, memory: Sequence[int]) -> ContextTrie:
        """The trie of `memory`, made from the last one where the memory only lost old tokens and got new ones."""
        memory = array("I", memory)
        gone = _dropped(self._tokens, memory)
        if gone == len(self._tokens):
            self.trie = ContextTrie()
        else:
            for start in range(gone):
                self.trie.remove(self._tokens[start : start + self.trie.order + 1])
        for token in memory[len(self._tokens) - gone :]:
            self.trie.add(token)
        self._tokens = memory
        return self.trie


def _dropped(old: array, new: array) -> int:
    """The least number of tokens to drop from the front of `old` so that `new` begins with the rest."""
    before, after, size = old.tobytes(), new.tobytes(), old.itemsize
    probe = after[: 64 * size]
    at = before.find(probe) if probe else -1
    while at >= 0:
        if at % size == 0 and after.startswith(before[at:]):
            return at // size
        at = before.find(probe, at + 1)
    # What is left may be shorter than the probe.
    return next((n for n in range(max(0, len(old) - 64), len(old)) if after.startswith(before[n * size :])), len(old))
