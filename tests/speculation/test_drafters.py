"""Each drafter on sequences whose continuation is plain to see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyweb.speculation.fixed import FixedDrafter
from pyweb.speculation.lookup import PromptLookup
from pyweb.speculation.mixing import ContextMixing
from pyweb.speculation.scan import TokenBuffer
from pyweb.speculation.suffix import SuffixTree

CLAUSE = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]


def started(start, prompt, earlier=()):
    drafter = start(earlier)
    drafter.observe(prompt)
    return drafter


@pytest.mark.parametrize("start", [PromptLookup, SuffixTree(), ContextMixing(), FixedDrafter])
@pytest.mark.parametrize("remembered", [False, True])
def test_a_repeated_clause_is_drafted_to_full_depth(start, remembered):
    opening = [1, 2, 11, 12]
    prompt = opening if remembered else [*CLAUSE, *opening]
    tree = started(start, prompt, CLAUSE if remembered else ()).draft(32).check()
    assert len(tree.accepted(CLAUSE[2:])) == 8


def test_lookup_copies_after_the_latest_of_the_longest_matches():
    drafter = started(PromptLookup, [1, 2, 3, 9, 1, 2, 4, 2, 5, 1, 2])
    tree = drafter.draft(4)
    assert (list(tree.tokens), list(tree.parents)) == ([2, 4, 2, 5], [-1, 0, 1, 2])
    assert list(started(PromptLookup, [1, 2, 3]).draft(8).tokens) == [3]


def test_suffix_tree_prefers_the_more_frequent_follower():
    tree = started(SuffixTree(), [7, 1, 5, 7, 1, 5, 7, 1, 6, 7, 1]).draft(3)
    assert list(tree.tokens)[:2] == [1, 5]


def test_mixing_blends_orders_and_falls_back_on_frequency():
    tree = started(ContextMixing(), [7, 1, 5, 8, 1, 6, 8, 1, 6, 7, 1]).draft(32)
    children = [t for t, p in zip(tree.tokens, tree.parents, strict=True) if p == 0]
    assert children[:2] == [5, 6], "the longer context first, the shorter one next"
    unknown = started(ContextMixing(), [4, 4, 4, 4, 5, 9]).draft(8)
    assert list(unknown.tokens)[:2] == [9, 4], "nothing followed 9 yet: the most frequent token"


def test_mixing_learns_whom_to_trust():
    mixing = ContextMixing()
    order = [1, 2, 3, 1, 2, 3]
    cells = []
    for reply in ([1, 2, 3] * 20, [5, 1, 5, 2, 5, 3] * 20):
        drafter = started(mixing, order)
        before = dict((k, list(v)) for k, v in mixing.reliability._cells.items())
        drafter.observe(reply)
        cells.append(before)
    assert cells[1] != cells[0], "trust persists from one request to the next"
    assert all(0 < credit < trials for credit, trials in mixing.reliability._cells.values())


def test_memory_is_only_seen_when_there_is_one():
    prompt = [1, 2, 30]
    for start in (ContextMixing(), FixedDrafter, SuffixTree()):
        assert 40 not in started(start, prompt).draft(32).tokens
        assert 40 in started(start, prompt, [30, 40, 41]).draft(32).tokens


@given(
    st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(1, 8)
)
def test_scan_finds_every_match(earlier, prompt, longest):
    buffer = TokenBuffer(earlier)
    buffer.extend(prompt)
    everything, start = [*earlier, *prompt], len(earlier)
    expected = []
    for place in range(1, len(everything)):
        side = everything[start:place] if place >= start else everything[:place]
        length = 0
        while length < min(longest, len(side), len(prompt)) and side[-1 - length] == prompt[-1 - length]:
            length += 1
        if length and place != start:
            expected.append((place, length))
    places, lengths = buffer.matches(longest)
    assert list(zip(places.tolist(), lengths.tolist(), strict=True)) == expected
