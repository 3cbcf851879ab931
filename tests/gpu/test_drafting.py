"""The drafter's kernels write the trees of their numpy twin, `FixedDrafter`, node for node."""

import asyncio
from random import Random
from struct import pack

import numpy as np
import pytest

from pyweb.kernels.tuning import SOFTWARE
from pyweb.plan.buffers import allocate
from pyweb.plan.control import MAX_NODES, STATE
from pyweb.plan.dispatch import Assembler
from pyweb.plan.drafting import DraftPlan
from pyweb.speculation.bounds import BLOCK, MEMORY_COMMON, TRUST
from pyweb.speculation.common import most_common
from pyweb.speculation.fixed import FixedDrafter
from tests.gpu.stage import decoder

VOCABULARY, CONTEXT, CAPACITY = 5000, 2200, 32768
FLAGS = STATE + 12


class Drafting:
    """The drafter alone, on buffers like an engine's, beside its twin."""

    def __init__(self, device):
        self.device, self.assembler, self.programs = device, Assembler(device), {}
        model = decoder(hidden=32, heads=1, feed_forward=32, vocabulary=64)
        self.buffers = asyncio.run(allocate(device, model, SOFTWARE, CONTEXT, True))
        self.plan = asyncio.run(DraftPlan.allocate(device, VOCABULARY, self.buffers, CAPACITY, TRUST))

    def begin(self, memory, prompt):
        self.memory, self.text = list(memory), []
        self.twin = FixedDrafter(self.memory)
        for write in self.plan.writes(self.memory, most_common(self.memory, MEMORY_COMMON)):
            self.device.write(*write)
        self.run(self.plan.begin())
        self.commit(prompt)

    def commit(self, tokens):
        """What `accept` leaves behind a step that emitted `tokens`."""
        control, context = self.buffers.control.buffer, self.buffers.context.buffer
        self.device.write(context, 4 * len(self.text), pack(f"<{len(tokens)}I", *tokens))
        self.text += tokens
        self.twin.observe(tokens)
        count = len(self.text)
        self.device.write(control, 0, pack("<4I", tokens[-1], 0, 0, 1))
        self.device.write(control, STATE, pack("<8I", count - 1, 1, count, 0, 0, 0, 0, 0))

    def draft(self, remembered=None):
        self.run(self.plan.dispatches(len(self.memory) if remembered is None else remembered))

    def run(self, dispatches):
        key = tuple(dispatches)
        if key not in self.programs:
            self.programs[key] = asyncio.run(self.assembler.program(dispatches))
        self.device.submit(self.programs[key])

    def read(self, binding):
        ticket = self.device.submit(0, 1, (binding.buffer, 0, binding.size))
        return np.frombuffer(asyncio.run(self.device.collect(ticket)), np.uint32)

    def tree(self):
        """Nodes of the tree, (valid, 4), and the match length."""
        words = self.read(self.buffers.control_head)
        valid, match = int(words[STATE // 4 + 1]), int(words[STATE // 4 + 7])
        return words[: 4 * valid].reshape(-1, 4).tolist(), match

    def check(self, **options):
        """Drafts and compares; the number of nodes and the match length."""
        self.draft(**options)
        nodes, match = self.tree()
        expected = self.twin.draft(MAX_NODES).check()
        masks = [1]
        for node, parent in enumerate(expected.parents[1:], 1):
            masks.append(masks[parent] | 1 << node)
        parents = [0, *expected.parents[1:]]
        assert nodes == [list(node) for node in zip(expected.tokens, parents, expected.depths, masks, strict=True)]
        assert match == self.twin.match_length
        return len(nodes), match


@pytest.fixture(scope="module")
def drafting(device):
    return Drafting(device)


class Texts:
    """Random text that quotes itself, so that contexts of all lengths occur again."""

    def __init__(self, seed, alphabet):
        self.random, self.alphabet = Random(seed), alphabet
        self.phrases = [self.fresh(self.random.randrange(2, 30)) for _ in range(12)]

    def fresh(self, count):
        return [self.random.randrange(self.alphabet) for _ in range(count)]

    def take(self, count):
        out = []
        while len(out) < count:
            phrase = self.random.choice(self.phrases)
            start = self.random.randrange(len(phrase))
            out += phrase[start : start + self.random.randrange(1, 16)]
            out += self.fresh(self.random.choice((0, 0, 1, 3)))
        return out[:count]


@pytest.mark.parametrize("alphabet", [2, 7, 60, VOCABULARY])
@pytest.mark.parametrize("remembered", [0, 1, 60, BLOCK - 1, BLOCK, 3000])
def test_trees_of_growing_text(drafting, alphabet, remembered):
    """The list of frequent tokens is kept over steps; prompts of one token and up."""
    texts = Texts(alphabet + remembered, alphabet)
    for count in (1, 2, 30, 300):
        drafting.begin(texts.take(remembered), texts.take(count))
        drafting.check()
        for emitted in (1, 9, 4):
            drafting.commit(texts.take(emitted))
            drafting.check()


@pytest.mark.parametrize("remembered", [0, 500])
def test_prompts_of_several_blocks(drafting, remembered):
    for seed, alphabet in enumerate((3, 40)):
        texts = Texts(seed, alphabet)
        for count in (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5):
            drafting.begin(texts.take(remembered), texts.take(count))
            drafting.check()
            drafting.commit(texts.take(3))
            assert drafting.check()[0] == MAX_NODES


def test_matches_beside_every_border(drafting):
    """A context whose continuation begins on, before and behind a block's border and the border of the memory."""
    context, random = [11, 12, 13, 14, 15, 16, 17, 18, 19], Random(5)
    for border in (BLOCK, 2 * BLOCK, 2 * BLOCK + 300):
        for place in range(border - 2, border + 3):
            memory = [random.randrange(1000, VOCABULARY) for _ in range(2 * BLOCK + 300)]
            prompt = [random.randrange(1000, VOCABULARY) for _ in range(400)]
            both = memory + prompt
            both[place - len(context) : place] = context
            drafting.begin(both[: len(memory)], both[len(memory) :] + context)
            # Across the memory's end a match has only the tokens on its own side.
            behind = place - len(memory)
            assert drafting.check()[1] == (8 if behind < 0 else min(8, behind))


def test_a_full_memory(drafting):
    texts = Texts(3, 300)
    drafting.begin(texts.take(CAPACITY), texts.take(100))
    for _ in range(3):
        assert drafting.check()[0] == MAX_NODES
        drafting.commit(texts.take(5))


def test_a_bound_above_the_memory_changes_nothing(drafting):
    """One program serves memories of several sizes."""
    texts = Texts(4, 50)
    for count in (0, 10, 2500):
        drafting.begin(texts.take(count), texts.take(50))
        drafting.check(remembered=CAPACITY)


@pytest.mark.parametrize("memory", [[], [1], [1] * 40, [1, 2] * 600], ids=["none", "one", "ones", "pairs"])
@pytest.mark.parametrize(
    "prompt", [[1], [1] * 9, [1] * 1500, [1, 2] * 700, list(range(600)), [7, *[1] * 8, 7]], ids=len
)
def test_degenerate_text(drafting, prompt, memory):
    drafting.begin(memory, prompt)
    drafting.check()
    for token in (1, 2, 1):
        drafting.commit([token])
        drafting.check()


def test_nothing_to_draft_from(drafting):
    """One token, seen for the first time: no match, and only itself as a frequent token."""
    drafting.begin([], [3])
    drafting.draft()
    nodes, match = drafting.tree()
    assert nodes[0] == [3, 0, 0, 1] and match == 0
    assert [node[0] for node in nodes] == [3] * len(nodes)


def test_frequent_tokens_outgrow_each_other(drafting):
    """More tokens than the list holds, whose counts overtake each other while the text grows."""
    random = Random(9)
    drafting.begin([], [random.randrange(60) for _ in range(50)])
    for _ in range(40):
        low = random.randrange(0, 60, 20)
        drafting.commit([random.randrange(low, low + 20) for _ in range(random.randrange(1, 10))])
        drafting.check()


def test_a_finished_reply_is_left_alone(drafting):
    texts = Texts(6, 9)
    drafting.begin(texts.take(500), texts.take(60))
    drafting.check()
    plan, control = drafting.plan, drafting.buffers.control
    drafting.device.write(control.buffer, FLAGS, pack("<I", 2))
    watched = (control, drafting.buffers.context, plan.memory, plan.draft, plan.places, plan.keys)
    before = [drafting.read(binding) for binding in watched]
    drafting.draft()
    for binding, old in zip(watched, before, strict=True):
        assert np.array_equal(drafting.read(binding), old)


def test_a_new_request_counts_anew(drafting):
    texts, others = Texts(7, 9), Texts(8, 9)
    drafting.begin(texts.take(900), texts.take(200))
    drafting.check()
    drafting.begin([], others.take(20))
    drafting.check()


def test_erasing_leaves_zeros(drafting):
    texts = Texts(10, 40)
    drafting.begin(texts.take(CAPACITY), texts.take(20))
    drafting.check()
    assert drafting.read(drafting.plan.memory).any() and drafting.read(drafting.plan.draft).any()
    for write in drafting.plan.erased():
        drafting.device.write(*write)
    assert not drafting.read(drafting.plan.memory).any()
    assert not drafting.read(drafting.plan.draft).any()
