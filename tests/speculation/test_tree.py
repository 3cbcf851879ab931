"""The tree's invariants, whatever grows it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.errors import UsageError
from pyweb.speculation.fixed import FixedDrafter
from pyweb.speculation.lookup import PromptLookup
from pyweb.speculation.mixing import ContextMixing
from pyweb.speculation.suffix import SuffixTree
from pyweb.speculation.tree import Tree, grow

STARTS = {
    "lookup": lambda: PromptLookup,
    "suffix": SuffixTree,
    "mix": ContextMixing,
    "gpu": lambda: FixedDrafter,
}
tokens = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@pytest.mark.parametrize("name", STARTS)
@settings(max_examples=60, deadline=None)
@given(earlier=st.lists(st.integers(0, 5), max_size=60), prompt=tokens, reply=st.lists(st.integers(0, 5), max_size=12))
def test_drafted_trees_are_valid_and_narrow_ones_begin_wide_ones(name, earlier, prompt, reply):
    drafter = STARTS[name]()(earlier)
    drafter.observe(prompt)
    for token in reply:
        drafter.observe([token])
    wide = drafter.draft(32).check()
    assert wide.tokens[0] == [*prompt, *reply][-1]
    for nodes in (1, 2, 4, 8, 16):
        narrow = drafter.draft(nodes)
        assert list(narrow.tokens) == list(wide.tokens)[:nodes]
        assert list(narrow.parents) == list(wide.parents)[:nodes]


@pytest.mark.parametrize("name", ["suffix", "mix", "gpu"])
@settings(max_examples=25, deadline=None)
@given(prompt=tokens, reply=tokens)
def test_a_draft_does_not_depend_on_how_tokens_arrive(name, prompt, reply):
    one, many = STARTS[name]()([]), STARTS[name]()([])
    one.observe(prompt)
    one.observe(reply)
    many.observe(prompt)
    for token in reply:
        many.observe([token])
    assert one.draft(32) == many.draft(32)


@given(
    weights=st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(0, 9), max_size=9),
    nodes=st.integers(1, 32),
)
def test_growth_takes_the_heaviest_nodes_of_all(weights, nodes):
    def expand(path, token, weight, depth, floor):
        return [(weight * weights.get((depth % 3, t), 0) // 10, t, t, (*path, t)) for t in range(3)]

    tree = grow(7, (), 1000, expand, nodes)
    everything, level = [], [((), 1000)]
    for depth in range(8):
        level = [(s, w) for p, own in level for _, _, _, s in expand(p, 0, own, depth, 0) if (w := weight(weights, s))]
        everything += [w for _, w in level]
    kept = [weight(weights, path) for path in paths(tree)[1:]]
    assert kept == sorted(everything, reverse=True)[: nodes - 1]


def weight(weights, path):
    value = 1000
    for depth, token in enumerate(path):
        value = value * weights.get((depth % 3, token), 0) // 10
    return value


def paths(tree):
    found = [()]
    for token, parent in zip(tree.tokens[1:], tree.parents[1:], strict=True):
        found.append((*found[parent], token))
    return found


def test_accepted_follows_the_future_as_far_as_it_goes():
    tree = Tree([9, 1, 2, 1, 3], [-1, 0, 0, 1, 3])
    assert tree.depths == [0, 1, 1, 2, 3]
    assert tree.accepted([1, 1, 3, 4]) == [1, 3, 4]
    assert tree.accepted([2, 1]) == [2]
    assert tree.accepted([3]) == []


@pytest.mark.parametrize(
    "tree",
    [
        Tree([], []),
        Tree([1] * 33, [-1] + [0] * 32),
        Tree([1, 2], [-1, 1]),
        Tree([1, 2], [0, 0]),
        Tree([1, 2, 2], [-1, 0, 0]),
        Tree(list(range(10)), list(range(-1, 9))),
    ],
)
def test_check_refuses_what_no_step_can_verify(tree):
    with pytest.raises(UsageError):
        tree.check()
