"""A drafter of one's own in the loop: its branches are found by the scan, and no id changes."""

import asyncio

import pytest

from pyweb.engine.suggestions import SUGGESTED_TOKENS, suggested_text
from pyweb.errors import UsageError
from pyweb.kernels.tuning import SOFTWARE
from pyweb.speculation.tree import Tree

NOTHING = 0xFFFFFFFF
PROMPT = [(i * 37 + 11) % 227 for i in range(20)]


class Oracle:
    """Knows the reply."""

    def __init__(self, tokens):
        self.tokens, self.seen = tokens, 0

    def observe(self, tokens):
        assert list(tokens) == self.tokens[self.seen : self.seen + len(tokens)]
        self.seen += len(tokens)

    def draft(self, nodes):
        rest = self.tokens[self.seen : self.seen + 8][: nodes - 1]
        return Tree([self.tokens[self.seen - 1], *rest], range(-1, len(rest)))


class Forest:
    """Offers a tree that no step can verify."""

    def observe(self, tokens):
        pass

    def draft(self, nodes):
        return Tree([1, 2, 3], [-1, 0, 7])


def reply(engine, mode, **options):
    return asyncio.run(engine.generate(PROMPT, max_tokens=40, mode=mode, **options))


@pytest.mark.parametrize("remembered", [(), tuple(range(50))], ids=["no memory", "memory"])
@pytest.mark.parametrize("window", [1, 4])
def test_suggestions_save_steps_and_change_nothing(engine, window, remembered):
    plain = reply(engine("tied", SOFTWARE), "loop")
    drafter = Oracle(PROMPT + plain.ids)
    drafted = reply(engine("tied", SOFTWARE), "fixed:8", window=window, drafter=drafter, remembered=remembered)
    assert drafted.ids == plain.ids
    assert drafted.steps < 0.8 * plain.steps


def test_a_tree_that_no_step_can_verify(engine):
    with pytest.raises(UsageError, match="nodes come after their parents"):
        reply(engine("tied", SOFTWARE), "fixed:8", drafter=Forest())


def test_branches_stand_behind_the_sequence_best_first():
    tree = Tree([5, 6, 7, 8], [-1, 0, 0, 1])
    text = suggested_text([3, 4, 5], tree)
    assert len(text) == SUGGESTED_TOKENS
    assert text[:10] == [3, 4, 5, 7, NOTHING, 3, 4, 5, 6, 8]
    assert set(text[10:]) == {NOTHING}


def test_branches_beyond_the_room_are_left_out():
    wide = Tree([0, *range(1, 32)], [-1] + [0] * 31)
    text = suggested_text(list(range(8)), wide)
    assert len(text) == SUGGESTED_TOKENS and text.count(NOTHING) >= 25
