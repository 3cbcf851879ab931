"""The GPU's twin against the algorithm as its module states it, written out a second time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.speculation.fixed import (
    BLOCK,
    BLOCK_KEEPS,
    MEMORY_COMMON,
    ONE,
    OWN_COMMON,
    SELECTED,
    TRUST,
    FixedDrafter,
)

small = st.lists(st.integers(0, 4), max_size=150)


def started(prompt, earlier=()):
    drafter = FixedDrafter(earlier)
    drafter.observe(prompt)
    return drafter


def numbered_candidates(prompt, earlier):
    """{number: (match length, side, count, continuation)} by the letter of sections 1 to 3."""
    tokens, start = [*earlier, *prompt], len(earlier)
    keys = []
    for place in range(1, len(tokens)):
        low = start if place >= start else 0
        length = 0
        while length < min(8, place - low, len(prompt)) and tokens[place - 1 - length] == tokens[-1 - length]:
            length += 1
        if length and place != start:
            keys.append(length << 26 | place)
    kept = [
        key
        for block in range(len(tokens) // BLOCK + 1)
        for key in sorted((k for k in keys if (k & (1 << 26) - 1) // BLOCK == block), reverse=True)[:BLOCK_KEEPS]
    ]
    found = {}
    for number, key in enumerate(sorted(kept, reverse=True)[:SELECTED]):
        found[number] = (key >> 26, key & (1 << 26) - 1, 0)
    number = SELECTED
    for low, high, room in ((start, len(tokens), OWN_COMMON), (0, start, MEMORY_COMMON)):
        places = {}
        for place in range(low, high):
            places.setdefault(tokens[place], []).append(place)
        ranked = sorted(places.values(), key=lambda p: (len(p), p[-1]), reverse=True)[:room]
        for i, own in enumerate(ranked):
            found[number + 2 * i] = (0, own[-1], len(own))
            if len(own) > 1:
                found[number + 2 * i + 1] = (0, own[-2], 0)
        number += 2 * room
    ends = [len(tokens), start]
    return {
        n: (length, int(place < start), count, tokens[place : min(place + 8, ends[place < start])])
        for n, (length, place, count) in found.items()
    }


def children(candidates, members, weight, depth, sizes):
    """Weight of each child token of a node, by the letter of section 4."""
    members = [n for n in members if len(candidates[n][3]) > depth]
    order = {n: min(8, candidates[n][0] + depth) for n in members}
    rest, vote, last = weight, [[0] * 9, [0] * 9], [0, 0]
    for k in range(8, 0, -1):
        for side in (0, 1):
            count = sum(candidates[n][1] == side and order[n] >= k for n in members)
            if count in (0, last[side]):
                continue
            last[side] = count
            mass = rest * TRUST[side][k] >> 8
            vote[side][k] = mass // count
            rest -= mass
    common = [0, 0]
    for side in (0, 1):
        if depth == 0 and sizes[side]:
            common[side] = rest * TRUST[side][0] >> 8
            rest -= common[side]
    totals = {}
    for n in members:
        _, side, count, tokens = candidates[n]
        if order[n]:
            value = sum(vote[side][1 : order[n] + 1])
        else:
            value = (common[side] >> 4) * count // sizes[side] << 4
        totals[tokens[depth]] = totals.get(tokens[depth], 0) + value
    return totals


def tree_by_the_letter(prompt, earlier):
    """(path, weight) of the 31 nodes of section 5: all nodes there are, sorted."""
    candidates = numbered_candidates(prompt, earlier)
    nodes, level = [], [((), ONE, list(candidates))]
    for depth in range(8):
        below = []
        for path, weight, members in level:
            for token, mass in children(candidates, members, weight, depth, (len(prompt), len(earlier))).items():
                inside = [n for n in members if candidates[n][3][depth : depth + 1] == [token]]
                if mass:
                    nodes.append((-mass, depth + 1, min(inside), (*path, token)))
                    below.append(((*path, token), mass, inside))
        level = below
    return [path for *_, path in sorted(nodes)[:31]]


@settings(max_examples=100, deadline=None)
@given(small.filter(len), small)
def test_the_tree_is_the_one_the_algorithm_states(prompt, earlier):
    tree = started(prompt, earlier).draft(32)
    paths = [()]
    for token, parent in zip(tree.tokens[1:], tree.parents[1:], strict=True):
        paths.append((*paths[parent], token))
    assert paths[1:] == tree_by_the_letter(prompt, earlier)


def test_fixed_selection_keeps_the_longest_then_latest_of_each_block():
    # Token 1 every 4th position: far more matches than a block may keep.
    prompt = [1, 2, 3, 4] * 600 + [1]
    chosen = started(prompt).selected()
    assert len(chosen) <= SELECTED
    assert chosen == sorted(chosen, reverse=True)
    blocks = np.bincount([place // BLOCK for _, place in chosen])
    assert blocks.max() == BLOCK_KEEPS
    assert chosen[0] == (8, 2397)
    drafter = started(prompt)
    drafter.draft(8)
    assert drafter.match_length == 8


def test_fixed_weights_by_hand():
    drafter = started([5, 1, 6, 2, 1])
    members = drafter.candidates()
    children = {t: (mass, number) for mass, number, t, _ in drafter._expand(members, 1, ONE, 0, 0)}
    match = ONE * TRUST[0][1] >> 8
    common = (ONE - match) * TRUST[0][0] >> 8
    once, twice = ((common >> 4) * 1 // 5) << 4, ((common >> 4) * 2 // 5) << 4
    assert children[6] == (match + once, 0), "the one match, and its share as a common token"
    assert children[1] == (twice, SELECTED), "the most common token, in the first slot after the matches"
    assert children[2][0] == children[5][0] == once


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.lists(st.integers(0, 3), max_size=200))
def test_fixed_children_never_outweigh_their_parent(prompt, earlier):
    drafter = started(prompt, earlier)
    level = [(ONE, drafter.candidates())]
    for depth in range(8):
        below = []
        for weight, members in level:
            children = drafter._expand(members, 0, weight, depth, 0)
            assert sum(mass for mass, *_ in children) <= weight < 1 << 32
            below += [(mass, inside) for mass, _, _, inside in children if mass]
        level = below
