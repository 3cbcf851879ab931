"""Context mixing: the reference drafter.

Every context of 0 to 8 tokens that ends the sequence has followers, and each follower was seen some number of times
(prediction by partial matching). The longest context speaks first. It is trusted with a share of the probability that
depends on its order, on how often it occurred and on how many followers it has; what it is not trusted with goes to
the next shorter context, down to the plain frequency of tokens. Page, conversation and reply form one source, the
memory of earlier replies another, with a trust of its own.

    P(t) = sum over contexts c, longest first, of  trust(c) * rest(c) * seen(c, t) / count(c)
    rest(c) = product of (1 - trust) over the contexts before c

Trust is learned while the reply is written: after each token, every context is credited with the share of the token's
probability that it contributed (one step of online expectation maximisation for a chain of mixtures; the "reliability
so far" of paper section "Draft-Free Drafting From Web Context"). A tree node is expanded with its own contexts, so
deeper predictions are mixed anew, and its weight is the probability of its whole path.
"""

from collections.abc import Iterator, Sequence

from pyweb.speculation.common import CommonTokens, Row, most_common
from pyweb.speculation.tree import MAX_NODES, Child, Tree, grow
from pyweb.speculation.trie import MAX_ORDER, Context, ContextTrie, MemoryIndex

__all__ = ["ContextMixing", "MixingDrafter", "Reliability"]

_COMMON = 64  # tokens of order 0 worth a thought: twice what a tree can hold
_RECENT = 0.5  # extra votes for the follower seen last
_CROWD = 40  # followers beyond which the rare ones are skipped
_UNSEEN = 1e-4  # probability of a token that no context knows
_BUCKETS = [0, 1, 2, 3, 4, 4] + [5] * 5 + [6] * 19 + [7]
_PRIOR = 8.0  # observations that the initial trust is worth
_HORIZON = 500.0  # observations after which the old ones count half: styles change with the task

Level = tuple[int, int, Context, list[float]]  # source, order, context, trust


class Reliability:
    """Trust in each kind of context: [credit, trials], kept for the whole session."""

    def __init__(self):
        self._cells: dict[int, list[float]] = {}

    def cell(self, source: int, order: int, context: Context) -> list[float]:
        """The cell of contexts like this one: same source, order, rough count and number of followers."""
        count, followers = context.count, len(context.followers)
        key = ((source * 16 + order) * 8 + _BUCKETS[count if count < 30 else 30]) * 8 + min(followers, 4)
        cell = self._cells.get(key)
        if cell is None:
            trust = 0.7 * order / (order + 1) if order else 0.1
            cell = self._cells[key] = [trust * _PRIOR, _PRIOR]
        return cell

    @staticmethod
    def learn(shares: list[tuple[list[float], float]]) -> None:
        """Credits the contexts of one token; `shares`, shortest context first, holds cell and share of the token's
        probability up to that context that the context itself gave."""
        reach = 1.0
        for cell, share in reversed(shares):
            cell[0] += reach * share
            cell[1] += reach
            reach *= 1 - share
            if cell[1] > _HORIZON:
                cell[0] /= 2
                cell[1] /= 2


class MixingDrafter:
    """Context mixing for one request; see the module for the method.

    Args:
        reliability: learned trust, updated while the reply grows.
        memory: index of earlier replies, or None.
        common: the most frequent tokens of the memory, see `most_common`.
    """

    def __init__(self, reliability: Reliability, memory: ContextTrie | None = None, common: Sequence[Row] = ()):
        self._reliability = reliability
        self._tries = [ContextTrie()] + ([memory] if memory else [])
        self._common = CommonTokens(_COMMON)
        self._memory_common = common
        self._remembered: list[Context | None] = []
        self._length = 0
        self._last = -1

    def observe(self, tokens: Sequence[int]) -> None:
        """Takes committed tokens; the first call brings the prompt, from which no trust is learned."""
        prompt = not self._length
        for token in tokens:
            if not prompt:
                self._learn(token)
                if self._remembered:
                    self._remembered = self._tries[1].follow(self._remembered, token)
            self._tries[0].add(token)
            self._common.add(token, self._length)
            self._length += 1
            self._last = token
        if prompt and len(self._tries) > 1:
            self._remembered = self._tries[1].locate(tokens)

    def draft(self, nodes: int) -> Tree:
        """The most probable prefix-closed tree of at most `nodes` nodes."""
        self._frequent = [self._common.ranked(), self._memory_common]
        # Pruning depends on the size asked for, and a narrow tree must begin like a wide one.
        return grow(self._last, None, 1.0, self._expand, MAX_NODES).first(nodes)

    def _contexts(self) -> list[Sequence[Context | None]]:
        return [self._tries[0].current, self._remembered][: len(self._tries)]

    def _levels(self, contexts: list[Sequence[Context | None]]) -> Iterator[Level]:
        """The contexts that know something, longest first. A context that occurred exactly as often as a longer one
        has the same followers and is passed over."""
        counts = [0, 0]
        cell = self._reliability.cell
        for order in range(MAX_ORDER, -1, -1):
            for source, own in enumerate(contexts):
                context = own[order] if order < len(own) else None
                if context is not None and context.count and context.count != counts[source]:
                    counts[source] = context.count
                    yield source, order, context, cell(source, order, context)

    def _learn(self, token: int) -> None:
        probability = _UNSEEN
        shares = []
        for _, order, context, cell in reversed(list(self._levels(self._contexts()))):
            follower = context.followers.get(token)
            votes = follower.seen if follower else 0
            recent = _RECENT if order else 0
            if follower and context.last == token:
                votes += recent
            given = cell[0] / cell[1] * votes / (context.count + recent)
            probability = given + (1 - cell[0] / cell[1]) * probability
            shares.append((cell, given / probability))
        self._reliability.learn(shares)

    def _expand(self, state, token: int, weight: float, depth: int, floor: float) -> list[Child]:
        contexts = self._contexts()
        if depth:
            contexts = [trie.follow(own, token) for trie, own in zip(self._tries, state, strict=True)]
        masses = self._mix(contexts, weight, floor)
        return [(mass, tie, follower, contexts) for tie, (follower, mass) in enumerate(masses.items())]

    def _mix(self, contexts: list[Sequence[Context | None]], rest: float, floor: float) -> dict[int, float]:
        """Probability of each follower, out of `rest`; what can't reach `floor` may be missing."""
        masses: dict[int, float] = {}
        for source, order, context, cell in self._levels(contexts):
            mass = rest * cell[0] / cell[1]
            if order:
                self._vote(masses, context, mass / (context.count + _RECENT), floor)
            else:
                unit = mass / context.count
                for token, count, _, _ in self._frequent[source]:
                    if unit * count < floor / 4:
                        break
                    masses[token] = masses.get(token, 0.0) + unit * count
            rest -= mass
            if rest < floor / 4:
                break
        return masses

    @staticmethod
    def _vote(masses: dict[int, float], context: Context, unit: float, floor: float) -> None:
        least = floor / unit / 4 if len(context.followers) > _CROWD else 0
        for token, follower in context.followers.items():
            if follower.seen >= least:
                masses[token] = masses.get(token, 0.0) + unit * follower.seen
        if context.last in masses:
            masses[context.last] += unit * _RECENT


class ContextMixing:
    """Starts a `MixingDrafter` for each request, with the trust learned so far and the memory indexed."""

    def __init__(self):
        self.reliability = Reliability()
        self._index = MemoryIndex()

    def __call__(self, memory: Sequence[int] = ()) -> MixingDrafter:
        trie = self._index.update(memory)
        if not len(memory):
            return MixingDrafter(self.reliability)
        return MixingDrafter(self.reliability, trie, most_common(memory, _COMMON))
