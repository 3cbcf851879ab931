"""The context trie against counting by hand."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pyweb.speculation.common import CommonTokens, most_common
from pyweb.speculation.trie import ContextTrie, MemoryIndex

ORDER = 3
tokens = st.lists(st.integers(0, 3), max_size=40)


def counted(trie):
    """{sequence: times seen} of all contexts in a trie."""
    found, stack = {}, [((), trie.root)]
    while stack:
        path, context = stack.pop()
        assert context.count == sum(f.seen for f in context.followers.values())
        for token, follower in context.followers.items():
            found[*path, token] = follower.seen
            stack.append(((*path, token), follower))
    return found


def by_hand(sequence, order):
    return Counter(tuple(sequence[i : i + n]) for n in range(1, order + 2) for i in range(len(sequence) - n + 1))


@given(tokens)
def test_counts_are_those_of_all_substrings(sequence):
    trie = ContextTrie(ORDER)
    for token in sequence:
        trie.add(token)
    assert counted(trie) == by_hand(sequence, ORDER)


@given(tokens, st.lists(st.integers(0, 3), max_size=5))
def test_locate_and_follow_find_the_same_contexts(sequence, end):
    trie = ContextTrie(ORDER)
    for token in sequence:
        trie.add(token)
    assert trie.locate(sequence)[: len(trie.current)] == trie.current
    contexts = [trie.root]
    for token in end:
        contexts = trie.follow(contexts, token)
    assert contexts == trie.locate(end)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=90), max_size=6), st.sampled_from([30, 200]))
def test_memory_index_holds_what_the_memory_holds(replies, capacity):
    memory, index = [], MemoryIndex()
    for reply in replies:
        memory = (memory + reply)[-capacity:]
        trie = index.update(memory)
        assert counted(trie) == by_hand(memory, trie.order)
        assert trie.locate(memory)[: len(trie.current)] == trie.current
    assert not counted(index.update([]))


def test_a_memory_that_merely_moves_on_is_not_indexed_afresh():
    index = MemoryIndex()
    kept = index.update(range(500))
    assert index.update(range(100, 600)) is kept
    assert index.update(range(590, 700)) is kept
    assert index.update(range(5)) is not kept


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 6))
def test_common_tokens_kept_up_to_date_equal_a_fresh_count(sequence, size):
    common = CommonTokens(size)
    for position, token in enumerate(sequence):
        common.add(token, position)
        assert common.ranked() == most_common(sequence[: position + 1], size)


def test_common_tokens_by_hand():
    assert most_common([5, 7, 5, 6, 7, 5], 2) == [(5, 3, 5, 2), (7, 2, 4, 1)]
    assert most_common([5, 6], 2) == [(6, 1, 1, -1), (5, 1, 0, -1)]
    assert most_common([], 2) == []
