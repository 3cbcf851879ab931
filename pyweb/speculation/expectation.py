"""How many tokens a step of each width will emit, learned from the records of the steps before.

Two questions, each with a table of decayed counts:

* which match lengths will the drafts of the window have that is submitted now? The newest record
  that the host has seen is some windows old then, so the table is kept by that record's match length
  and outcome, and learns from pairs as far apart as the two really are;
* how many tokens does a step of width N emit at a match length? A record tells that for its own width
  only. But trees of all widths are first nodes of the same tree, so what one width yields says much
  about the others: a level, one number per match length, picks a curve of a family, and a width's own
  records correct the curve.

Plain decoding emits one token a step and still records match lengths, so the first table goes on
learning there.
"""

from collections.abc import Mapping, Sequence

from pyweb.kernels.tuning import WIDTHS

__all__ = ["START", "Expectation", "state_of"]

# Match lengths that behave alike share a row; a drafter compares eight tokens.
ROW_OF_MATCH = (0, 1, 2, 3, 3, 4, 4, 4, 5)
ROWS = 6
PLAIN, MISS, PART, FULL = range(4)
# State before the first record of a reply.
START = 4 * ROWS
# A draft is at most eight tokens deep.
MOST_TOKENS = 9

# Tokens a step for each width: from no draft at all, over means of context-mixing drafts whose longest
# match was 1, 2-3, 5-6 and 8 tokens (replies of two small models, ten tasks), to perfect drafts.
FAMILY = (
    (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    (1.0, 1.30, 1.60, 1.92, 2.18, 2.37),
    (1.0, 1.60, 2.33, 3.15, 3.65, 3.87),
    (1.0, 1.77, 2.90, 4.25, 4.88, 5.05),
    (1.0, 1.92, 3.60, 6.50, 7.50, 7.65),
    (1.0, 2.0, 4.0, 8.0, 9.0, 9.0),
)
FIRST_LEVEL = (0.0, 0.9, 1.6, 2.1, 2.9, 3.9)

# Rows of the window two later, in the same replies.
AFTER_PLAIN = (
    (0.36, 0.36, 0.20, 0.04, 0.02, 0.02),
    (0.22, 0.32, 0.17, 0.25, 0.02, 0.02),
    (0.14, 0.25, 0.13, 0.38, 0.08, 0.02),
    (0.10, 0.19, 0.10, 0.09, 0.44, 0.08),
    (0.07, 0.15, 0.07, 0.06, 0.25, 0.40),
    (0.03, 0.05, 0.02, 0.02, 0.02, 0.86),
)
AFTER_MISS = (0.25, 0.44, 0.12, 0.10, 0.05, 0.04)
AFTER_PART = (0.20, 0.42, 0.11, 0.09, 0.07, 0.11)
AFTER_FULL = (
    (0.36, 0.40, 0.10, 0.08, 0.04, 0.02),
    (0.16, 0.30, 0.08, 0.10, 0.16, 0.20),
    (0.13, 0.25, 0.09, 0.08, 0.20, 0.25),
    (0.11, 0.24, 0.08, 0.07, 0.18, 0.32),
    (0.09, 0.18, 0.07, 0.05, 0.04, 0.57),
    (0.03, 0.06, 0.02, 0.02, 0.01, 0.86),
)
AT_START = (0.58, 0.22, 0.10, 0.04, 0.03, 0.03)

# How much of the counts a new step leaves, and how many steps the numbers above weigh. Chosen by replaying
# recorded replies: faster forgetting follows a change of task, slower is a little better within one.
KEEP_ROWS, TRUST_ROWS = 0.95, 8.0
KEEP_TOKENS, TRUST_TOKENS, TRUST_LEVEL = 0.95, 20.0, 6.0
KEEP_LUCK, TRUST_LUCK = 0.95, 6.0
KEEP_LUCK_PLAIN = 0.99


def row_of(match: int) -> int:
    return ROW_OF_MATCH[min(match, len(ROW_OF_MATCH) - 1)]


def state_of(record: tuple[int, int, int]) -> int:
    """What the newest record says about the windows to come: its match length and outcome.

    Args:
        record: tokens emitted, match length, width.
    """
    tokens, match, width = record
    if width == 1:
        outcome = PLAIN
    elif tokens <= 1:
        outcome = MISS
    else:
        outcome = FULL if tokens >= min(width, MOST_TOKENS) else PART
    return outcome * ROWS + row_of(match)


def _first_rows() -> list[list[float]]:
    after = [*AFTER_PLAIN, *[AFTER_MISS] * ROWS, *[AFTER_PART] * ROWS, *AFTER_FULL, AT_START]
    return [[TRUST_ROWS * share for share in row] for row in after]


class Expectation:
    """Expected tokens a step, for each of `WIDTHS`."""

    def __init__(self):
        self._rows = _first_rows()
        self._steps = [[0.0] * len(WIDTHS) for _ in range(ROWS)]
        self._tokens = [[0.0] * len(WIDTHS) for _ in range(ROWS)]
        self._curves = [self._fit(row) for row in range(ROWS)]
        # Drafted tokens accepted lately, and those expected: a change of text shows here first, at all
        # match lengths at once.
        self._accepted = self._foreseen = 0.0

    def tokens(self, state: int) -> list[float]:
        """Expected tokens a step, by width, of the window submitted after the one that ended in `state` was seen."""
        rows = self._rows[state]
        drafted = [-1.0] * len(WIDTHS)
        total = sum(rows)
        for count, curve in zip(rows, self._curves, strict=True):
            share = count / total
            for index, value in enumerate(curve):
                drafted[index] += share * value
        luck = (self._accepted + TRUST_LUCK) / (self._foreseen + TRUST_LUCK)
        return [
            min(1.0 + luck * value, float(width), MOST_TOKENS)
            for value, width in zip(drafted, WIDTHS, strict=True)
        ]

    def learn(self, state: int, records: Sequence[tuple[int, int, int]]) -> None:
        """Takes in a window.

        Args:
            state: the one that its width was chosen in.
            records: of its live steps: tokens emitted, match length, width.
        """
        rows = self._rows[state]
        for tokens, match, width in records:
            row = row_of(match)
            for index in range(ROWS):
                rows[index] *= KEEP_ROWS
            rows[row] += 1.0
            if width > 1:
                self._learn_tokens(row, WIDTHS.index(width), tokens)
            else:
                self._accepted *= KEEP_LUCK_PLAIN
                self._foreseen *= KEEP_LUCK_PLAIN

    def _learn_tokens(self, row: int, index: int, tokens: int) -> None:
        self._accepted = KEEP_LUCK * self._accepted + tokens - 1
        self._foreseen = KEEP_LUCK * self._foreseen + self._curves[row][index] - 1.0
        steps, sums = self._steps[row], self._tokens[row]
        for other in range(len(WIDTHS)):
            steps[other] *= KEEP_TOKENS
            sums[other] *= KEEP_TOKENS
        steps[index] += 1.0
        sums[index] += tokens
        self._curves[row] = self._fit(row)

    def _fit(self, row: int) -> list[float]:
        """Tokens by width at a match length: the family's curve through the records, then corrected."""
        steps, sums = self._steps[row], self._tokens[row]
        trust = TRUST_LEVEL / (len(WIDTHS) - 1)
        weights = [0.0, *(count + trust for count in steps[1:])]
        level = _level(weights, sum(sums[1:]) + trust * sum(_curve(FIRST_LEVEL[row])[1:]))
        return [
            (total + TRUST_TOKENS * value) / (count + TRUST_TOKENS)
            for total, count, value in zip(sums, steps, _curve(level), strict=True)
        ]

    def to_dict(self) -> dict[str, list]:
        """Plain data: all that was learned."""
        return {
            "rows": [list(row) for row in self._rows],
            "steps": [list(row) for row in self._steps],
            "tokens": [list(row) for row in self._tokens],
            "luck": [self._accepted, self._foreseen],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, list]) -> "Expectation":
        self = cls()
        self._rows = [list(row) for row in data["rows"]]
        self._steps = [list(row) for row in data["steps"]]
        self._tokens = [list(row) for row in data["tokens"]]
        self._accepted, self._foreseen = data["luck"]
        self._curves = [self._fit(row) for row in range(ROWS)]
        return self


def _curve(level: float) -> list[float]:
    below = min(int(level), len(FAMILY) - 2)
    part = level - below
    return [low + part * (high - low) for low, high in zip(FAMILY[below], FAMILY[below + 1], strict=True)]


def _level(weights: Sequence[float], goal: float) -> float:
    """Level at which the family, weighted, adds up to `goal`."""
    low = sum(weights)
    for below in range(len(FAMILY) - 1):
        high = sum(weight * value for weight, value in zip(weights, FAMILY[below + 1], strict=True))
        if goal <= high:
            return below + max(goal - low, 0.0) / (high - low)
        low = high
    return float(len(FAMILY) - 1)
