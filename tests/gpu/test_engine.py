"""Replies of a tiny Llama: modes, windows, how they end, and what they cost."""

import asyncio
import math

import numpy as np
import pytest

from pyweb.engine.modes import DEPTH
from pyweb.errors import PromptTooLongError, StoppedError
from pyweb.kernels.tuning import GPU, SOFTWARE


@pytest.fixture(scope="session")
def prompt(reference):
    return reference("tied")["ids"][:20].tolist()


@pytest.fixture(scope="session")
def tiny(engine):
    return engine("tied", SOFTWARE)


def generate(engine, prompt, **options):
    return asyncio.run(engine.generate(prompt, **options))


def cache_of(engine, count):
    """Keys and values of the first `count` positions, layer by layer: (2, kv_heads, count, head_size)."""
    device, b, d = engine.device, engine._plan.buffers, engine.decoder

    def read(binding, kind):
        ticket = device.submit(0, 1, (binding.buffer, 0, binding.size))
        return np.frombuffer(asyncio.run(device.collect(ticket)), kind)

    slots = read(b.order, np.uint32)[:count]
    shape = (2, d.kv_heads, b.slots, d.head_size)
    return [read(kv, np.float16 if b.kv_f16 else np.float32).reshape(shape)[:, :, slots] for kv in b.kv]


@pytest.fixture(scope="session")
def plain(tiny, prompt):
    """Ids of a reply of 24 tokens, one read-back a token."""
    return generate(tiny, prompt, max_tokens=24, mode="greedy").ids


def test_greedy_takes_the_largest_logit(tiny, prompt, plain):
    rows, _ = asyncio.run(tiny.trace([*prompt, *plain], 4))
    logits = np.array([np.frombuffer(row, np.float32) for row in rows])
    assert logits[len(prompt) - 1 :].argmax(1).tolist() == plain


@pytest.mark.parametrize("window", [1, 2, 4, 8])
def test_loop_gives_the_ids_of_greedy(tiny, prompt, plain, window):
    pieces = []
    reply = generate(tiny, prompt, max_tokens=24, window=window, on_tokens=pieces.append)
    assert reply.ids == plain == sum(pieces, [])
    assert (reply.finish_reason, reply.steps, reply.widths) == ("length", 24, {1: 24})


def test_both_modes_with_workgroup_kernels(engine, tuning, prompt):
    loaded = engine("tied", tuning)
    replies = [generate(loaded, prompt, max_tokens=12, mode=mode).ids for mode in ("greedy", "loop")]
    assert replies[0] == replies[1] and len(replies[0]) == 12


@pytest.mark.parametrize("window", [1, 4])
def test_loop_reads_once_a_window_and_greedy_once_a_token(tiny, device, prompt, plain, window):
    def maps(**options):
        before = device.counters()["maps"]
        generate(tiny, prompt, max_tokens=24, **options)
        return device.counters()["maps"] - before

    assert maps(mode="greedy") == 24
    assert maps(window=window) == math.ceil(24 / window) + DEPTH - 1  # more windows are under way when the end is read


def test_a_reply_depends_on_no_earlier_one(tiny, prompt, plain):
    generate(tiny, prompt[::-1] * 3, max_tokens=24)
    assert generate(tiny, prompt, max_tokens=24).ids == plain


def test_decoding_leaves_the_cache_of_a_prefill(tiny, prompt, plain):
    generate(tiny, prompt, max_tokens=24)
    decoded = cache_of(tiny, len(prompt) + len(plain) - 1)
    asyncio.run(tiny.trace([*prompt, *plain], 32))
    prefilled = cache_of(tiny, len(prompt) + len(plain) - 1)
    for one, other in zip(decoded, prefilled, strict=True):
        assert one.any() and np.array_equal(one, other)


@pytest.mark.parametrize("mode", ["greedy", "loop"])
def test_a_stop_token_ends_a_reply_and_is_no_part_of_it(tiny, prompt, plain, mode):
    for at in (0, 1, 6, 7):
        stop = plain[at]
        pieces = []
        reply = generate(tiny, prompt, max_tokens=24, stops=[stop], mode=mode, on_tokens=pieces.append)
        assert reply.finish_reason == "stop"
        assert reply.ids == plain[: plain.index(stop)] == sum(pieces, [])


@pytest.mark.parametrize("mode", ["greedy", "loop"])
@pytest.mark.parametrize("limit", [1, 3, 4, 5, 9])
def test_no_token_beyond_the_limit(tiny, prompt, plain, limit, mode):
    pieces = []
    reply = generate(tiny, prompt, max_tokens=limit, mode=mode, on_tokens=pieces.append)
    assert reply.finish_reason == "length"
    assert reply.ids == plain[:limit] == sum(pieces, [])


@pytest.mark.parametrize("mode", ["greedy", "loop"])
@pytest.mark.parametrize("room", [1, 2, 5, 8])
def test_a_full_context_ends_a_reply(tiny, prompt, room, mode):
    long = (prompt * 5)[: tiny.context - room]
    reply = generate(tiny, long, mode=mode)
    assert (reply.finish_reason, len(reply.ids)) == ("length", room)


def test_a_prompt_that_leaves_no_room(tiny, prompt):
    with pytest.raises(PromptTooLongError, match=f"has {tiny.context} tokens"):
        generate(tiny, (prompt * 5)[: tiny.context])


def test_a_prompt_of_one_token(tiny):
    assert len(generate(tiny, [5], max_tokens=6).ids) == 6


def test_a_prompt_ends_anywhere_in_a_chunk(tiny, prompt):
    """The reply to a prompt of any length is what its logits, computed token by token, ask for."""
    long = prompt * 4
    for count in (2, 31, 32, 33, 34, 64, 65):
        rows, _ = asyncio.run(tiny.trace([*long[:count], 0], 1))
        assert generate(tiny, long[:count], max_tokens=1).ids == [np.frombuffer(rows[-1], np.float32).argmax()]


def test_stopping(tiny, prompt, plain):
    pieces = []
    reply = generate(tiny, prompt, max_tokens=24, on_tokens=pieces.append, stopped=lambda: len(pieces) == 2)
    assert reply.finish_reason == "cancelled"
    assert reply.ids == plain[:8]
    with pytest.raises(StoppedError):
        generate(tiny, prompt * 4, stopped=lambda: True)
    assert generate(tiny, prompt, max_tokens=24).ids == plain


def test_progress_of_a_prefill(tiny, prompt):
    seen = []
    report = lambda done, total: seen.append((done, total))  # noqa: E731
    generate(tiny, prompt * 4, max_tokens=1, reuse=False, on_prefill=report)
    assert seen == [(0, 79), (32, 79), (64, 79), (79, 79)]


FOLLOW_UP = [7, 3, 9, 2, 11, 4]


def caches_equal(one, other):
    return all(a.any() and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("options", [{}, {"mode": "fixed:8"}, {"mode": "greedy"}], ids=str)
@pytest.mark.parametrize("name", ["software", "gpu"])
def test_a_follow_up_takes_what_is_common_from_the_cache(engine, prompt, name, options):
    """With the bits of a prefill of everything, after a reply by drafts, one cut by a stop token, and a stopped one."""
    loaded = engine("tied", {"software": SOFTWARE, "gpu": GPU}[name])
    first = generate(loaded, prompt, max_tokens=12, reuse=False, **options)
    stop = first.ids[8]
    seen = []
    ended = {
        "length": {"max_tokens": 12},
        "stop": {"max_tokens": 12, "stops": [stop]},
        "cancelled": {"max_tokens": 40, "on_tokens": seen.append, "stopped": lambda: len(seen) >= 2},
    }
    for reason, how in ended.items():
        first = generate(loaded, prompt, reuse=False, **options, **how)
        assert first.finish_reason == reason
        whole = [*prompt, *first.ids, *FOLLOW_UP]
        second = generate(loaded, whole, max_tokens=10, **options)
        kept = cache_of(loaded, len(whole) + 9)
        fresh = generate(loaded, whole, max_tokens=10, reuse=False, **options)
        assert second.ids == fresh.ids and fresh.reused == 0
        assert second.reused == len(prompt) + len(first.ids) - (0 if reason == "stop" else 1)
        assert caches_equal(kept, cache_of(loaded, len(whole) + 9))


def test_only_what_is_common_is_reused(tiny, prompt):
    reply = generate(tiny, prompt, max_tokens=8)
    other = [*prompt[:11], prompt[11] + 1, *prompt[12:]]
    changed = generate(tiny, other, max_tokens=8)
    assert changed.reused == 11
    assert changed.ids == generate(tiny, other, max_tokens=8, reuse=False).ids
    again = generate(tiny, other, max_tokens=8, mode="greedy")
    assert (again.reused, again.ids) == (len(other) - 1, changed.ids)
    assert generate(tiny, prompt, max_tokens=8).ids == reply.ids


def test_after_checking_or_measuring_no_old_reply_is_reused(tiny, prompt):
    for disturb, left in ((lambda: tiny.trace(prompt, 4), 0), (lambda: tiny.perplexity_sum(prompt[:9]), 8)):
        plain = generate(tiny, prompt, max_tokens=4, reuse=False)
        asyncio.run(disturb())
        again = generate(tiny, prompt, max_tokens=4)
        assert (again.ids, again.reused) == (plain.ids, left)


def test_a_prefill_that_was_stopped_is_gone_on_with(tiny, prompt):
    long, calls = prompt * 4, []
    with pytest.raises(StoppedError):
        generate(tiny, long, reuse=False, stopped=lambda: calls.append(0) or len(calls) > 0)
    reply = generate(tiny, long, max_tokens=6)
    assert reply.reused == 64
    assert reply.ids == generate(tiny, long, max_tokens=6, reuse=False).ids


@pytest.mark.parametrize("mode", ["greedy", "loop", "fixed:8"])
def test_whoever_reads_can_end_a_reply(tiny, prompt, plain, mode):
    got = []
    reply = generate(
        tiny, prompt, max_tokens=24, mode=mode, on_tokens=lambda new: got.extend(new) or (5 if len(got) > 5 else None)
    )
    assert (reply.ids, reply.finish_reason) == (plain[:5], "stop")
    assert generate(tiny, prompt, max_tokens=24).ids == plain
