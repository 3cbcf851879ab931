"""Chooses the blocks of a page that matter for a question, within a budget of tokens."""

from collections.abc import Callable, Sequence

from pyweb.page.blocks import Block, Page
from pyweb.page.cutting import cut
from pyweb.page.ranking import Ranking
from pyweb.page.words import is_general

__all__ = ["select"]

Count = Callable[[str], int]
Score = Callable[[str], float]

# No tokenizer packs this many characters into a token on average: a longer page
# needn't be counted to know that it doesn't fit.
_MAX_TOKEN_LENGTH = 40
# An answer often stands beside the words of its question: a block gets this part of
# its neighbour's score, the square of it from the next but one, and so on.
_SPILL = 0.5
# A heading speaks for its section, but less than the section's own words.
_HEADING_WEIGHT = 0.5
# For a question about the whole page: how much the opening of a section counts
# beside the opening of the page.
_OPENING = 0.35
# Of a block that doesn't fit, a part is taken if this share of the budget is left for it.
_MIN_CUT_SHARE = 0.125
# After so many blocks that don't fit, the gap that is left isn't worth more counting.
_MAX_MISSES = 20


def _sections(blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """For every block the indices of the headings above it, outermost first."""
    above: list[int] = []
    chains = []
    for index, block in enumerate(blocks):
        if block.kind == "heading":
            while above and blocks[above[-1]].level >= block.level:
                above.pop()
        chains.append(tuple(above))
        if block.kind == "heading":
            above.append(index)
    return chains


def _candidates(blocks: Sequence[Block], chains: Sequence[tuple[int, ...]]) -> list[int]:
    """Blocks to choose among: no headings, but for those with nothing below them."""
    with_content = {heading for chain in chains for heading in chain}
    return [i for i, block in enumerate(blocks) if block.kind != "heading" or i not in with_content]


def _spread(scores: list[float], sections: Sequence[tuple[int, ...]]) -> list[float]:
    """Scores with what spills over from neighbours of the same section."""

    def sweep(order: Sequence[int]) -> list[float]:
        carried, result, previous = 0.0, [0.0] * len(scores), None
        for i in order:
            if previous is not None and sections[i] != sections[previous]:
                carried = 0.0
            result[i] = carried
            carried = _SPILL * max(carried, scores[i])
            previous = i
        return result

    before, after = sweep(range(len(scores))), sweep(range(len(scores) - 1, -1, -1))
    return [score + max(left, right) for score, left, right in zip(scores, before, after, strict=True)]


def _specific_scores(
    ranking: Ranking, blocks: Sequence[Block], chains: Sequence[tuple[int, ...]], candidates: Sequence[int]
) -> list[float]:
    """BM25 of each candidate, with its best heading's and its neighbours' part."""
    headings = {i: ranking.score(block.text) for i, block in enumerate(blocks) if block.kind == "heading"}
    own = [
        score + _HEADING_WEIGHT * max((headings[h] for h in chains[i]), default=0.0)
        for i, score in zip(candidates, ranking.scores, strict=True)
    ]
    return _spread(own, [chains[i] for i in candidates])


def _general_scores(blocks: Sequence[Block], candidates: Sequence[int], budget: int) -> list[float]:
    """The lead first, then the openings of sections."""
    scores, before = [], 0
    for i in candidates:
        opens = i > 0 and blocks[i - 1].kind == "heading"
        # In units of the budget, at four characters a token.
        scores.append(budget / (budget + before / 4 + 1) + (_OPENING if opens else 0.0))
        before += len(blocks[i].text)
    return scores


def _no_preference(text: str) -> float:
    """Every part of a block is as good: a block that has to be cut keeps its beginning."""
    return 0.0


class _Basket:
    """Chosen blocks and the tokens they cost, the blank lines between them included."""

    def __init__(self, blocks: Sequence[Block], budget: int, count: Count):
        self.source, self.budget, self.left, self.count = blocks, budget, budget, count
        self.kept: dict[int, Block] = {}
        self._steps: list[list[int]] = []

    def cost(self, block: Block) -> int:
        return self.count(block.text + "\n\n")

    def take(self, index: int, chain: tuple[int, ...], score: Score) -> bool:
        """Puts in a block, or a part of it, with the headings it lacks; False where there's no room."""
        block = self.source[index]
        headings = [h for h in chain if h not in self.kept]
        above = sum(self.cost(self.source[h]) for h in headings)
        cost = self.cost(block)
        room = self.left - above
        if cost > room:
            part = self._cut(block, room, score)
            if part is None:
                return False
            block, cost = part, self.cost(part)
        self.kept |= {**{h: self.source[h] for h in headings}, index: block}
        self._steps.append([*headings, index])
        self.left -= above + cost
        return True

    def _cut(self, block: Block, room: int, score: Score) -> Block | None:
        if room < _MIN_CUT_SHARE * self.budget:
            return None
        return cut(block, room, score, self.count)

    def blocks(self) -> tuple[Block, ...]:
        """What was taken, in document order, and not more than the budget."""
        # The whole may count for more than its parts: the last to come in goes first.
        while self._steps and self.count("\n\n".join(block.text for block in self._in_order())) > self.budget:
            for index in self._steps.pop():
                del self.kept[index]
        return self._in_order()

    def _in_order(self) -> tuple[Block, ...]:
        return tuple(self.kept[index] for index in sorted(self.kept))


def _everything_fits(page: Page, budget: int, count: Count) -> bool:
    text = page.text
    return len(text) <= _MAX_TOKEN_LENGTH * budget and count(text) <= budget


def select(page: Page, question: str, budget: int, count: Count) -> tuple[Block, ...]:
    """Blocks of a page that fit in a budget, in document order, each with the headings above it.

    All of them where they fit. Otherwise the best for the question by BM25, a neighbour's
    score spilling over; for a question about the page as a whole its lead and the openings
    of its sections. What is left of the budget is filled in the same order. A block that
    is too large is cut at sentence (or line) borders around its best part.

    Args:
        budget: tokens that the blocks, joined by blank lines, may take.
        count: tokens of a text.
    """
    blocks = page.blocks
    if _everything_fits(page, budget, count):
        return blocks
    chains = _sections(blocks)
    candidates = _candidates(blocks, chains)
    if is_general(question):
        scores, score = _general_scores(blocks, candidates, budget), _no_preference
    else:
        ranking = Ranking(question, [blocks[i].text for i in candidates])
        scores, score = _specific_scores(ranking, blocks, chains, candidates), ranking.score
    order = sorted(zip(scores, candidates, strict=True), key=lambda pair: (-pair[0], pair[1]))

    basket = _Basket(blocks, budget, count)
    misses = 0
    for _, index in order:
        misses += not basket.take(index, chains[index], score)
        if misses > _MAX_MISSES:
            break
    return basket.blocks()
