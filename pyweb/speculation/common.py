"""The most frequent tokens of a growing sequence: drafts of order 0."""

from collections import Counter
from collections.abc import Sequence

__all__ = ["CommonTokens", "Row", "most_common"]

Row = tuple[int, int, int, int]  # token, count, latest position, previous position or -1


def most_common(tokens: Sequence[int], size: int) -> list[Row]:
    """The `size` tokens with the greatest (count, latest position) of a finished sequence, greatest first."""
    latest = {token: place for place, token in enumerate(tokens)}
    counts = Counter(tokens)
    ranks = sorted(((count, latest[token], token) for token, count in counts.items()), reverse=True)[:size]
    chosen = {token for _, _, token in ranks}
    previous = {t: place for place, t in enumerate(tokens) if t in chosen and place != latest[t]}
    return [(token, count, place, previous.get(token, -1)) for count, place, token in ranks]


class CommonTokens:
    """The `size` tokens with the greatest (count, latest position), exact after every token.

    Counts and positions only grow, so a token outside the list can enter it only when it occurs: the list is kept by
    looking at the new token alone, on the GPU as well.
    """

    def __init__(self, size: int):
        self.size = size
        self.total = 0
        self._counts: dict[int, int] = {}
        self._places: dict[int, tuple[int, int]] = {}  # latest and previous position, -1 for none
        self._listed: set[int] = set()

    def add(self, token: int, position: int) -> None:
        """Counts a token at a position beyond all earlier ones."""
        self.total += 1
        self._counts[token] = self._counts.get(token, 0) + 1
        self._places[token] = (position, self._places.get(token, (-1, -1))[0])
        if token in self._listed:
            return
        self._listed.add(token)
        if len(self._listed) > self.size:
            self._listed.remove(min(self._listed, key=self._rank))

    def _rank(self, token: int) -> tuple[int, int]:
        return self._counts[token], self._places[token][0]

    def ranked(self) -> list[Row]:
        """The list as it stands, the greatest first."""
        order = sorted(self._listed, key=self._rank, reverse=True)
        return [(token, self._counts[token], *self._places[token]) for token in order]
