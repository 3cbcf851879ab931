"""The controller: chooses, between windows, how many tree nodes the steps of the next window have.

It takes the width with the most expected tokens for its milliseconds (paper, "Feedback Control of
Speculation Width"). Three windows are in flight, so what it knows is as many old when its choice runs;
`Expectation` learns with that delay. A budget, in steps of plain decoding, bounds what speculation may
lose: gains fill it, losses and probes empty it, every token adds a little. In debt, a wider tree needs
better prospects, the better the deeper the debt.
"""

from collections.abc import Iterable, Mapping, Sequence

from pyweb.errors import UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.speculation.costs import Costs
from pyweb.speculation.expectation import START, Expectation, state_of

__all__ = ["Controller"]

Record = tuple[int, int, int]

# Budget: what every token adds and the most that is saved up, in plain steps: together they aim below 3%
# of a session of a thousand tokens. Each step of debt asks 5% more tokens of a wider tree.
ALLOWANCE, MOST_SAVED, DEMAND = 0.01, 12.0, 0.05
# A probe costs at most this share of the plain steps before it, and a cheap one still waits for eight;
# each failure doubles the spacing, up to eightfold.
PROBE_SHARE, LEAST_SPACING, MOST_BACKOFF = 0.01, 8.0, 8.0
# A wide tree, too, now and then gives way to the next wider one: a cost that was measured too high at load
# would never be corrected otherwise. At most this share of the time goes there.
LOOK_SHARE = 0.003
# A step costs what it takes and the tokens it leaves for later, which cost what tokens cost lately, or
# what the best width makes of them: in between, by this weight.
WEIGHT_OF_RATE, KEEP_RATE = 0.4, 0.97


class Controller:
    """Deterministic: the same calls give the same widths. The learned numbers live on across replies.

    Call `begin` where a reply starts; then `width` for every window submitted, and for every window read,
    in the order of submission, `completed` (if the interval is known) and `observe`.

    Args:
        costs: T(N); refined through `completed`.
        widths: those to choose from, of `WIDTHS`.
        learned: of an earlier controller's `to_dict`, or nothing.

    Raises:
        UsageError: no width, or one that isn't of `WIDTHS`.
    """

    def __init__(
        self, costs: Costs, widths: Sequence[int] = WIDTHS, learned: Mapping[str, object] | None = None
    ):
        if not widths or not set(widths) <= set(WIDTHS):
            raise UsageError(f"Widths to choose from must be of {', '.join(map(str, WIDTHS))}.")
        self.costs = costs
        self.widths = tuple(sorted(widths))
        self._expectation = Expectation()
        self._saved = MOST_SAVED
        self._backoff = 1.0
        # Steps since a window of the width was submitted.
        self._unused = dict.fromkeys(self.widths, 0)
        # Decayed sums: tokens, milliseconds.
        self._rate = [1.0, costs[self.widths[0]]]
        if learned:
            self._restore(learned)
        self.begin()

    def begin(self) -> None:
        """A reply starts: forgets the windows in flight, keeps what was learned, starts the log anew."""
        self._state = START
        self._window = 1
        self._pending: list[tuple[int, bool]] = []
        self.log: list[tuple] = [("begin", self.to_dict())]

    def width(self) -> int:
        """Width of the window that is submitted next."""
        expected = self._expected()
        width = self._affordable(self._best(expected), expected)
        probe = self._probe(expected) if width == 1 else 0
        width = probe or self._look(width)
        self._unused[width] = 0
        self._pending.append((self._state, bool(probe)))
        self.log.append(("width", width))
        return width

    def observe(self, records: Iterable[Record]) -> None:
        """Reads the records of the oldest window in flight.

        Args:
            records: of its live steps, none where the reply was finished before: tokens emitted, match
                length of the best draft candidate that the step used, width.
        """
        records = [tuple(record) for record in records]
        self.log.append(("observe", tuple(records)))
        state, probe = self._pending.pop(0) if self._pending else (self._state, False)
        if not records:
            return
        self._account(records, probe)
        self._expectation.learn(state, records)
        self._state = state_of(records[-1])
        self._window = len(records)

    def completed(self, width: int, steps: int, milliseconds: float) -> None:
        """Interval between the completion of a window and of the one before it; refines T(N).

        Args:
            width: of the window.
            steps: its live steps.
            milliseconds: of the interval; leave the call out where the GPU idled in between.
        """
        self.log.append(("completed", width, steps, milliseconds))
        self.costs.refine(width, steps, milliseconds)

    def expected_tokens(self) -> dict[int, float]:
        """Tokens a step that it expects of each width now, for display."""
        return self._expected()

    def to_dict(self) -> dict[str, object]:
        """Plain data: what it learned, costs included."""
        return {
            "widths": list(self.widths),
            "costs": self.costs.to_dict(),
            "expectation": self._expectation.to_dict(),
            "saved": self._saved,
            "backoff": self._backoff,
            "unused": {str(width): steps for width, steps in self._unused.items()},
            "rate": list(self._rate),
        }

    @classmethod
    def replay(cls, log: Sequence[Sequence]) -> "Controller":
        """Runs a recorded log again; the new controller's own log must equal it.

        Args:
            log: `log` of a controller, or the same read back from JSON.
        """
        name, learned = log[0]
        if name != "begin":
            raise UsageError("A controller's log starts with `begin`.")
        self = cls(Costs.from_dict(learned["costs"]), learned["widths"], learned)
        for name, *arguments in log[1:]:
            if name == "width":
                self.width()
            else:
                getattr(self, name)(*arguments)
        return self

    def _restore(self, learned: Mapping[str, object]) -> None:
        self._expectation = Expectation.from_dict(learned["expectation"])
        self._saved, self._backoff = learned["saved"], learned["backoff"]
        unused = learned["unused"]
        self._unused = {width: unused.get(str(width), 0) for width in self.widths}
        self._rate = list(learned["rate"])

    def _expected(self) -> dict[int, float]:
        tokens = dict(zip(WIDTHS, self._expectation.tokens(self._state), strict=True))
        return {width: tokens[width] for width in self.widths}

    def _best(self, expected: Mapping[int, float]) -> int:
        costs = self.costs
        top = max(tokens / costs[width] for width, tokens in expected.items())
        lately = self._rate[0] / self._rate[1]
        price = WEIGHT_OF_RATE * lately + (1.0 - WEIGHT_OF_RATE) * top
        return max(expected, key=lambda width: expected[width] - price * costs[width])

    def _affordable(self, width: int, expected: Mapping[int, float]) -> int:
        """The width, or 1 where there is debt and the prospects don't make up for it."""
        demand = 1.0 + DEMAND * max(-self._saved, 0.0)
        in_debt = demand > 1.0 and expected[width] < demand * self.costs.ratio(width)
        return 1 if in_debt and 1 in expected else width

    def _probe(self, expected: Mapping[int, float]) -> int:
        """A wider width to try after a stretch of plain decoding, the least unlikely one, or 0.

        Poor prospects wait longer, so a probe happens where the text is most likely to have changed.
        """
        wider = self.widths[1:]
        if not wider or self._saved < 0.0:
            return 0
        ratio = self.costs.ratio
        width = max(wider, key=lambda width: expected[width] / ratio(width))
        prospect = min(expected[width] / ratio(width), 1.0)
        excess = (ratio(width) - 1.0) * self._window
        spacing = max(excess / PROBE_SHARE, LEAST_SPACING) * self._backoff
        plain_steps = min(self._unused[other] for other in wider)
        return width if plain_steps * prospect**4 >= spacing else 0

    def _look(self, width: int) -> int:
        """The width, or the next wider one where that wasn't tried for long."""
        wider = [other for other in self.widths if other > width > 1]
        if not wider or self._saved < 0.0:
            return width
        excess = self.costs.ratio(wider[0]) / self.costs.ratio(width) - 1.0
        spacing = max(excess * self._window / LOOK_SHARE, 8.0 * LEAST_SPACING)
        return wider[0] if self._unused[wider[0]] >= spacing else width

    def _account(self, records: Sequence[Record], probe: bool) -> None:
        """Books a window: what it gained over plain decoding, and the tokens per millisecond of late."""
        tokens = sum(emitted for emitted, _, _ in records)
        gain = tokens - sum(self.costs.ratio(width) for _, _, width in records)
        for width in self.widths:
            self._unused[width] += len(records)
        self._saved = min(self._saved + gain + ALLOWANCE * tokens, MOST_SAVED)
        if probe:
            self._backoff = 1.0 if gain >= 0.0 else min(2.0 * self._backoff, MOST_BACKOFF)
        for emitted, _, width in records:
            self._rate[0] = KEEP_RATE * self._rate[0] + emitted
            self._rate[1] = KEEP_RATE * self._rate[1] + self.costs[width]
