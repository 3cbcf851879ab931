"""The draft tree, and the best-first growth that every tree drafter shares.

A step of N nodes takes the first N nodes of a tree, whatever N is, so nodes stand best first and every node's parent
stands before it (paper, "GPU-Resident Speculation Loop").
"""

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from pyweb.errors import UsageError

__all__ = ["MAX_DEPTH", "MAX_NODES", "Tree", "grow"]

MAX_NODES = 32  # a node's ancestors are a 32-bit mask
MAX_DEPTH = 8  # tokens that a draft extends the reply by


@dataclass(frozen=True)
class Tree:
    """Draft nodes, best first.

    Attributes:
        tokens: token of each node; node 0 is the last committed token.
        parents: index of each node's parent, always smaller than its own; -1 for node 0.
    """

    tokens: Sequence[int]
    parents: Sequence[int]

    @property
    def depths(self) -> list[int]:
        """Distance of each node from node 0."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return depths

    def first(self, nodes: int) -> "Tree":
        """The tree that a step of `nodes` nodes takes."""
        return Tree(self.tokens[:nodes], self.parents[:nodes])

    def check(self) -> "Tree":
        """Gives the tree back if a step can verify it.

        Raises:
            UsageError: more than 32 nodes, a path of more than 8 tokens, a child before its parent, or twins.
        """
        count = len(self.tokens)
        if not 1 <= count <= MAX_NODES or len(self.parents) != count:
            raise UsageError(f"A draft tree has 1 to {MAX_NODES} nodes with a parent each, not {count}.", _REMEDY)
        if self.parents[0] != -1 or any(not 0 <= p < i for i, p in enumerate(self.parents) if i):
            raise UsageError("A draft tree's nodes come after their parents, node 0 first.", _REMEDY)
        if max(self.depths) > MAX_DEPTH:
            raise UsageError(f"A draft extends at most {MAX_DEPTH} tokens.", _REMEDY)
        if len(set(zip(self.parents, self.tokens, strict=True))) < count:
            raise UsageError("Two children of a draft node have the same token.", _REMEDY)
        return self

    def accepted(self, future: Sequence[int]) -> list[int]:
        """Nodes of the longest path below node 0 that spells the beginning of `future`."""
        child = {(p, t): i for i, (p, t) in enumerate(zip(self.parents, self.tokens, strict=True))}
        path, node = [], 0
        for token in future:
            if (node := child.get((node, token), -1)) < 0:
                break
            path.append(node)
        return path


_REMEDY = "Correct the drafter that made it."

# (weight, tie, token, state): a smaller tie wins among nodes of equal weight and depth.
Child = tuple[float, int, int, object]
# (state, token, weight, depth, floor) of a node: its children, where those lighter than `floor` can be left out.
Expand = Callable[[object, int, float, int, float], Iterable[Child]]


def grow(root: int, state: object, one: float, expand: Expand, nodes: int) -> Tree:
    """The heaviest prefix-closed set of at most `nodes` nodes, heaviest first.

    Among equals the shallower node comes first, then the smaller tie. A child must not weigh more than its parent:
    then taking the heaviest open node again and again visits nodes in their global order.

    Args:
        root: token of node 0.
        state: what `expand` is given for node 0; a child is expanded with the state it came with.
        one: weight of node 0.
        expand: gives the children of a node. Children that weigh nothing are dropped.
        nodes: size limit of the tree, node 0 included.
    """
    tokens, parents = [root], [-1]
    heap: list = []
    leaders: list[float] = []  # the heaviest nodes met so far, as many as there is room for
    wanted = min(nodes, MAX_NODES) - 1
    token, weight, depth, floor = root, one, 0, 0
    while len(tokens) <= wanted:
        if depth < MAX_DEPTH:
            for mass, tie, follower, below in expand(state, token, weight, depth, floor):
                if mass <= 0 or mass < floor:
                    continue
                heappush(heap, (-mass, depth + 1, tie, len(tokens) - 1, follower, below))
                insort(leaders, mass)
                if len(leaders) > wanted:
                    del leaders[0]
                    floor = leaders[0]
        if not heap:
            break
        weight, depth, _, parent, token, state = heappop(heap)
        weight = -weight
        tokens.append(token)
        parents.append(parent)
    return Tree(tokens, parents)
