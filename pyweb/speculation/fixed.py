"""The GPU's drafter in numpy: context mixing with fixed trust, bounded work and integer weights.

The kernels compute exactly this, bit for bit; every choice below is a total order, so any parallel version agrees.
All values are u32.

**Input.** One buffer of `length` tokens: memory at 0 .. start - 1, prompt and reply from `start` on. A match and its
continuation stay on their side of `start`. The suffix is the buffer's end.

**1. Scan.** A position p (neither 0 nor `start`) with tokens[p - 1] = tokens[length - 1] has a match length
m = 1 .. 8: the number of tokens before p, within p's side, that equal the last ones of prompt and reply. Its key is
m << 26 | p: longer first, then later. Blocks of BLOCK = 1024 positions (p // 1024) each keep their BLOCK_KEEPS = 16
greatest keys.

**2. Select.** The SELECTED = 48 greatest keys of all blocks, in falling order, are candidates 0 .. 47.

**3. Common tokens.** Candidates of match length 0. Of prompt and reply the OWN_COMMON = 24 tokens with the greatest
(count, latest position), of the memory the MEMORY_COMMON = 16; in that falling order, each gives two candidates: its
latest position and its previous one (absent where there is none). The first kind carries the token's count, the second
a count of 0. The memory's list is fixed for a request; the other one is kept up to date: see `CommonTokens`.
Candidates are numbered in that order: 48 matches, then 2 x 24, then 2 x 16; absent ones leave a gap. 128 in all.

**4. Merge.** A candidate's continuation is tokens[p], tokens[p + 1], ..., at most 8 and within its side. Candidates
whose continuations begin alike share trie nodes. A node at depth d (node 0: d = 0, weight ONE = 2^20) is expanded over
its members, the candidates that pass through it and have a token number d (from 0). A member's order is min(8, m + d).

    rest = weight
    for k = 8 .. 1, and for side = own, memory:
        n = members of that side with order >= k  (at d = 0 without common candidates: their order is 0)
        if n = 0 or n = the n this side had last: continue
        mass = rest * TRUST[side][k] >> 8;  vote[side][k] = mass / n;  rest -= mass
    at d = 0 also k = 0, for side = own, memory, if the side has tokens:
        mass = rest * TRUST[side][0] >> 8;  rest -= mass
        a common candidate's vote = (mass >> 4) * count / (tokens of that side) << 4
    any other member's vote = sum of vote[side][1 .. order]

(division rounds down; a side of up to 65,535 tokens can't overflow.) A child's weight is the sum of the votes of the
members that share its token. Children that weigh 0 don't exist.

**5. Emit.** The tree is node 0 and the first 31 nodes in the order (weight falling, depth rising, lowest candidate
number among the node's members rising). Votes sum to at most the parent's weight, so a parent precedes its children.

That trust depends on the match length alone costs little: learned tables over (length, n) came out nearly flat in n.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyweb.speculation.bounds import (
    BLOCK,
    BLOCK_KEEPS,
    MEMORY_COMMON,
    ONE,
    OWN_COMMON,
    SELECTED,
    TRUST,
)
from pyweb.speculation.common import CommonTokens, most_common
from pyweb.speculation.scan import TokenBuffer
from pyweb.speculation.tree import MAX_DEPTH, Child, Tree, grow
from pyweb.speculation.trie import MAX_ORDER

__all__ = ["Candidate", "FixedDrafter"]

class Candidate(NamedTuple):
    """A place whose continuation may be drafted."""

    number: int
    length: int  # of its match
    side: int  # 0 own, 1 memory
    count: int  # of a common token, 0 for the rest
    tokens: list[int]


class FixedDrafter:
    """The GPU's drafter for one request, given the memory's tokens; see the module for the algorithm.

    Attributes:
        buffer: memory, prompt and reply.
        match_length: that of candidate 0 in the last draft, 0 without one; the step's record carries it.
    """

    def __init__(self, memory: Sequence[int] = ()):
        self.buffer = TokenBuffer(memory)
        self.match_length = 0
        self._common = CommonTokens(OWN_COMMON)
        self._memory_common = most_common(memory, MEMORY_COMMON)

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens."""
        for position, token in enumerate(tokens, self.buffer.length):
            self._common.add(token, position)
        self.buffer.extend(tokens)

    def draft(self, nodes: int) -> Tree:
        """The tree that the GPU writes, cut to `nodes` nodes."""
        candidates = self.candidates()
        self.match_length = candidates[0].length if candidates else 0
        return grow(int(self.buffer.tokens[-1]), candidates, ONE, self._expand, nodes)

    def selected(self) -> list[tuple[int, int]]:
        """(match length, position) of the candidates that the scan finds, best first."""
        places, lengths = self.buffer.matches(MAX_ORDER)
        kept: dict[int, int] = {}
        chosen: list[tuple[int, int]] = []
        # `places` rise, so a stable sort by length, read backwards, is the order of the keys.
        for i in np.argsort(lengths, kind="stable")[::-1].tolist():
            place = int(places[i])
            kept[place // BLOCK] = kept.get(place // BLOCK, 0) + 1
            if kept[place // BLOCK] <= BLOCK_KEEPS:
                chosen.append((int(lengths[i]), place))
                if len(chosen) == SELECTED:
                    break
        return chosen

    def candidates(self) -> list[Candidate]:
        """All candidates, by number."""
        start, continuation = self.buffer.start, self.buffer.continuation
        found = [
            Candidate(number, length, int(place < start), 0, continuation(place, MAX_DEPTH))
            for number, (length, place) in enumerate(self.selected())
        ]
        number = SELECTED
        for side, rows, room in ((0, self._common.ranked(), OWN_COMMON), (1, self._memory_common, MEMORY_COMMON)):
            for i, (_, count, latest, previous) in enumerate(rows):
                for j, (votes, place) in enumerate(((count, latest), (0, previous))):
                    if place >= 0:
                        found.append(Candidate(number + 2 * i + j, 0, side, votes, continuation(place, MAX_DEPTH)))
            number += 2 * room
        return found

    def _expand(self, members: list[Candidate], token: int, weight: int, depth: int, floor: int) -> list[Child]:
        members = [c for c in members if len(c.tokens) > depth]
        if depth and len(members) == 1:
            return _only_child(members[0], weight, depth)
        votes, rest = _votes(members, weight, depth)
        common = self._common_masses(rest) if not depth else (0, 0)
        children: dict[int, list] = {}
        for member in members:
            length, side = member.length, member.side
            if length + depth:
                vote = votes[side][min(MAX_ORDER, length + depth)]
            else:
                vote = ((common[side] >> 4) * member.count // self._side_tokens(side)) << 4
            child = children.get(member.tokens[depth])
            if child is None:
                children[member.tokens[depth]] = [vote, member.number, [member]]
            else:
                child[0] += vote
                child[2].append(member)
        return [(mass, number, follower, below) for follower, (mass, number, below) in children.items()]

    def _side_tokens(self, side: int) -> int:
        return self.buffer.start if side else self.buffer.length - self.buffer.start

    def _common_masses(self, rest: int) -> tuple[int, int]:
        own = rest * TRUST[0][0] >> 8
        return own, (rest - own) * TRUST[1][0] >> 8 if self.buffer.start else 0


def _only_child(member: Candidate, weight: int, depth: int) -> list[Child]:
    """`_expand` for a node with one member: only its highest order counts, every lower one has the same n."""
    order = min(MAX_ORDER, member.length + depth)
    return [(weight * TRUST[member.side][order] >> 8, member.number, member.tokens[depth], [member])]


def _votes(members: list[Candidate], rest: int, depth: int) -> tuple[list[list[int]], int]:
    """Votes by side and order, and what is left of the weight."""
    counts = [[0] * (MAX_ORDER + 1), [0] * (MAX_ORDER + 1)]
    for member in members:
        order = member.length + depth
        counts[member.side][order if order < MAX_ORDER else MAX_ORDER] += 1
    votes = [[0] * (MAX_ORDER + 1), [0] * (MAX_ORDER + 1)]
    seen = [0, 0]
    for order in range(MAX_ORDER, 0, -1):
        for side in (0, 1):
            if counts[side][order]:
                seen[side] += counts[side][order]
                mass = rest * TRUST[side][order] >> 8
                votes[side][order] = mass // seen[side]
                rest -= mass
    for side in (0, 1):
        for order in range(2, MAX_ORDER + 1):
            votes[side][order] += votes[side][order - 1]
    return votes, rest
