"""Questions on a tiny model: the memory of replies, kept costs, and what an answer says of itself."""

import asyncio
import json

import pytest

import pyweb
from pyweb.engine import Calibration, Sampling, engine
from pyweb.errors import PromptTooLongError, StoppedError, UsageError
from pyweb.speculation.memory import Memory
from tests.api.conftest import COSTS, QUESTION, Words, ask, remember

MODEL = "tiny"


class DictStore(dict):
    """`pyweb.api.keeping.Store` in memory."""

    async def get(self, key):
        return dict.get(self, key)

    async def put(self, key, text):
        self[key] = text

    async def remove(self, prefix):
        for key in [key for key in self if key.startswith(prefix)]:
            del self[key]


@pytest.fixture
def seen(assistant, monkeypatch):
    """Memories that the engine was given, a list a reply."""
    return watch(assistant, monkeypatch)


def watch(assistant, monkeypatch):
    given, generate = [], assistant.engine.generate

    def spy(prompt, **options):
        given.append(list(options["remembered"]))
        return generate(prompt, **options)

    monkeypatch.setattr(assistant.engine, "generate", spy)
    return given


def memory_keys(store):
    return [key for key in store if key.startswith("memory\n")]


def store_with_costs(assistant, text=None):
    """A store that knows the tiny model's costs on this adapter, or has `text` in their place."""
    text = json.dumps(COSTS.to_dict()) if text is None else text
    remember(assistant, "off", store := DictStore(), MODEL)
    store[assistant._keeping.costs_key] = json.dumps(COSTS.to_dict()) if text is None else text
    return store


def test_an_answer(assistant):
    pieces, prefilled = [], []
    answer = ask(assistant, on_text=pieces.append, on_progress=lambda *done: prefilled.append(done))
    assert answer.answer == "".join(pieces) == Words().decode(answer.reply_ids)
    assert len(answer.reply_ids) == 10 and answer.finish_reason == "length"
    assert answer.prompt_ids == assistant.prompt(QUESTION)
    assert prefilled[-1] == ("prefill", *[len(answer.prompt_ids) - 1] * 2)
    assert (answer.mode, answer.widths) == ("fixed:8", {"8": answer.steps})
    assert sum(emitted for emitted, _, _ in answer.records) == 10
    assert sum(steps for _, steps, _ in answer.windows) == answer.steps == len(answer.records)
    assert "SwiftShader" in answer.adapter and answer.maps > 0 and answer.dispatches > answer.submits
    assert answer.times.pop("paused") == 0
    assert answer.times.keys() == {"load", "prefill", "first_token", "decode"}
    assert all(seconds > 0 for seconds in answer.times.values())


@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.0, seed=7)], ids=["greedy", "sampled"])
def test_every_mode_gives_the_same_answer(assistant, sampling):
    remember(assistant, "conversation")
    assistant.engine.calibration = COSTS
    modes = ("greedy", "loop", "fixed:8", "adaptive")
    answers = [ask(assistant, mode=mode, sampling=sampling) for mode in modes]
    assert len({tuple(answer.reply_ids) for answer in answers}) == 1
    assert answers[0].steps == 10 > answers[2].steps


def test_questions_at_the_same_time_wait_for_each_other(assistant):
    async def both():
        return await asyncio.gather(*(assistant.ask(QUESTION, max_tokens=4, mode="loop") for _ in range(2)))

    first, second = asyncio.run(both())
    assert first.reply_ids == second.reply_ids


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question(assistant, question):
    with pytest.raises(UsageError, match="question is empty"):
        ask(assistant, question)


def test_a_prompt_too_long(assistant):
    with pytest.raises(PromptTooLongError, match="the context holds 128"):
        ask(assistant, text="word " * 200)


def test_an_unknown_scope(assistant):
    with pytest.raises(UsageError, match="off, conversation, origin, not 'forever'"):
        remember(assistant, "forever")


def test_the_memory_is_off_by_default(assistant, seen):
    store = DictStore()
    ask(assistant)
    remember(assistant, "off", store, MODEL)
    ask(assistant)
    assert seen == [[], []] and not store


def test_a_conversation_is_remembered_but_not_kept(assistant, seen):
    store = DictStore()
    remember(assistant, "conversation", store, MODEL)
    first = ask(assistant)
    second = ask(assistant)
    third = ask(assistant, "Another question ?")
    assert seen == [[], first.reply_ids, first.reply_ids + second.reply_ids]
    assert second.reply_ids == first.reply_ids and second.steps < first.steps
    assert third.prompt_ids == assistant.prompt("Another question ?")
    assert not store


def test_an_origin_is_remembered_by_the_next_visit(open_assistant, monkeypatch):
    store, replies = DictStore(), []
    for _ in range(2):
        assistant = open_assistant()
        given = watch(assistant, monkeypatch)
        remember(assistant, "origin", store, MODEL)
        answer = ask(assistant)
        assert given == [sum(replies, [])]
        replies.append(answer.reply_ids)
        (key,) = memory_keys(store)
        assert list(Memory.from_text(store[key]).tokens) == sum(replies, [])
    assert replies[0] == replies[1]
    remember(other := open_assistant(), "origin", store, "another model")
    given = watch(other, monkeypatch)
    ask(other, max_tokens=1)
    assert given == [[]]


def test_off_again_drafts_from_nothing(assistant, seen):
    remember(assistant, "conversation")
    ask(assistant)
    remember(assistant, "off")
    ask(assistant)
    assert seen == [[], []]


def test_forgetting(assistant, seen):
    store = store_with_costs(assistant)
    remember(assistant, "origin", store, MODEL)
    reply = ask(assistant).reply_ids
    store["memory\nanother model\n1"] = Memory([1]).to_text()
    asyncio.run(assistant.forget())
    assert not memory_keys(store) and len(store) == 1  # costs say nothing of what was asked
    drafting = assistant.engine._programs.drafting
    assert not any(contents(assistant.device, drafting.memory)) and not any(contents(assistant.device, drafting.draft))
    assert ask(assistant).reply_ids == reply
    assert seen == [[], []]


def contents(device, binding):
    return asyncio.run(device.collect(device.submit(0, 1, (binding.buffer, 0, binding.size))))


def test_forgetting_without_a_store(assistant, seen):
    asyncio.run(assistant.forget())
    remember(assistant, "conversation")
    ask(assistant, max_tokens=2)
    asyncio.run(assistant.forget())
    ask(assistant, max_tokens=2)
    assert seen == [[], []]


@pytest.fixture
def measured(monkeypatch):
    """Widths of each measurement."""
    asked, measure = [], engine.calibrate_costs

    def spy(device, programs, begin, widths, **options):
        asked.append(tuple(widths))
        return measure(device, programs, begin, widths, **options)

    monkeypatch.setattr(engine, "calibrate_costs", spy)
    return asked


def test_costs_are_measured_once_and_kept(open_assistant, measured):
    store = DictStore()
    for _visit in range(2):
        remember(assistant := open_assistant(), "off", store, MODEL)
        for _ in range(2):
            answer = ask(assistant, mode="adaptive")
            assert len(answer.reply_ids) == 10 and set(answer.widths) <= {"1", "2", "4", "8"}
        assert measured == [(1, 2, 4, 8)]
    kept = Calibration.from_dict(json.loads(store[assistant._keeping.costs_key]))
    assert min(kept.costs.values()) > 0 and assistant.engine.calibration == kept
    named = ("SwiftShader", MODEL, pyweb.__version__, assistant.engine.tuning.fingerprint)
    assert all(part in assistant._keeping.costs_key for part in named)


def test_other_modes_need_no_costs(assistant, measured):
    for mode in ("greedy", "loop", "fixed:4"):
        ask(assistant, mode=mode, max_tokens=2)
    assert not measured and assistant.engine.calibration is None


def test_measuring_again(open_assistant, measured):
    assistant = open_assistant()
    store = store_with_costs(assistant)
    remember(assistant, "off", store, MODEL)
    ask(assistant, mode="adaptive", max_tokens=2)
    assert not measured and assistant.engine.calibration == COSTS
    fresh = asyncio.run(assistant.recalibrate())
    assert measured == [(1, 2, 4, 8)]
    assert json.loads(store[assistant._keeping.costs_key]) == fresh != COSTS.to_dict()
    ask(assistant, mode="adaptive", max_tokens=2)
    assert assistant.engine._controller.costs[1] != COSTS.costs[1]


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", '{"costs": {"1": NaN}, "window": 1}', '{"costs": {"3": 1}}'])
def test_damaged_costs_are_measured_again(assistant, measured, text):
    store = store_with_costs(assistant, text)
    remember(assistant, "off", store, MODEL)
    assert len(ask(assistant, mode="adaptive", max_tokens=3).reply_ids) == 3
    assert measured == [(1, 2, 4, 8)]
    assert Calibration.from_dict(json.loads(store[assistant._keeping.costs_key])) == assistant.engine.calibration


@pytest.mark.parametrize("text", ["", "no base64!", "QUJD", "ä"])
def test_a_damaged_memory_is_an_empty_one(assistant, seen, text):
    remember(assistant, "origin", store := DictStore(), MODEL)
    store[assistant._keeping.memory_key] = text
    remember(assistant, "origin", store, MODEL)
    reply = ask(assistant, max_tokens=3).reply_ids
    assert seen == [[]]
    assert list(Memory.from_text(store[assistant._keeping.memory_key]).tokens) == reply


def test_check(assistant):
    assert asyncio.run(assistant.check((1, 2, 8), range(1, 12)))["equal"] == {"2": True, "8": True}
    with pytest.raises(UsageError, match="no width 3"):
        asyncio.run(assistant.check((3,)))


def test_a_full_context_ends_the_reply(assistant):
    answer = ask(assistant, text="word " * 70, max_tokens=500)
    assert answer.finish_reason == "length"
    assert len(answer.prompt_ids) + len(answer.reply_ids) == assistant.engine.context


@pytest.mark.parametrize("mode", ["greedy", "loop", "fixed:8"])
def test_a_stop_string_cuts_at_the_same_place_in_every_mode(assistant, mode):
    whole = ask(assistant, max_tokens=16, mode="loop")
    words = whole.answer.split()
    stop = f"{words[5][1:]} {words[6]}"  # across two tokens
    cut = ask(assistant, max_tokens=16, mode=mode, stop=["never", stop])
    assert cut.finish_reason == "stop"
    assert cut.answer == whole.answer[: whole.answer.index(stop)]
    assert cut.reply_ids == whole.reply_ids[: len(cut.reply_ids)] and len(cut.reply_ids) < 8


def test_a_question_can_be_stopped_before_its_turn(assistant):
    async def both():
        first = asyncio.ensure_future(assistant.ask(QUESTION, max_tokens=6, mode="loop"))
        second = asyncio.ensure_future(assistant.ask(QUESTION, mode="loop", stopped=lambda: True))
        third = asyncio.ensure_future(assistant.ask(QUESTION, max_tokens=6, mode="loop"))
        return await asyncio.gather(first, second, third, return_exceptions=True)

    first, second, third = asyncio.run(both())
    assert isinstance(second, StoppedError) and first.reply_ids == third.reply_ids
