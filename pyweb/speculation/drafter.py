"""What a drafter is: a class with two methods.

    class Echo:
        def observe(self, tokens):          # committed tokens: the prompt first, then the reply bit by bit
            self.last = tokens[-1]

        def draft(self, nodes):             # the next tree, at most `nodes` nodes
            return Tree([self.last, self.last], [-1, 0])

A drafter serves one request. What outlives a request (learned weights, an index of the memory) belongs to the
function that starts one, see `Start`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from pyweb.speculation.tree import Tree

__all__ = ["Drafter", "Start"]


class Drafter(Protocol):
    """Guesses how a token sequence goes on."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens, once each, in order. The first call brings the whole prompt."""

    def draft(self, nodes: int) -> Tree:
        """The tree to verify next, of at most `nodes` nodes; node 0 is the last observed token.

        A narrower step takes the first nodes of a wide tree, so `draft(8)` must be the beginning of `draft(32)`,
        and may depend on nothing but the tokens observed.
        """


# Makes the drafter of the next request, given the session memory: the tokens of earlier replies, oldest first.
Start = Callable[[Sequence[int]], Drafter]
