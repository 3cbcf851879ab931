"""Questions on a tiny model: the memory of replies, kept costs, and what an answer says of itself."""

import asyncio
import json
from dataclasses import replace
from zlib import crc32

import pytest

import pyweb
from pyweb.api import opening
from pyweb.api.assistant import Assistant
from pyweb.engine import Calibration, Sampling, engine
from pyweb.errors import DeviceLostError, PromptTooLongError, StoppedError, UsageError
from pyweb.prompt import Tokenizer
from pyweb.speculation.memory import Memory
from pyweb.weights import read_gguf
from tests.gpu.conftest import FIXTURES, CachingDevice
from tests.gpu.dawn import FileSource

VOCABULARY, MODEL = 227, "tiny"
QUESTION = "What does the keeper of the light do when the fog comes in from the sea ?"
COSTS = Calibration({1: 20.0, 2: 21.0, 4: 22.0, 8: 24.0}, 1)


class Words:
    """A backend with an id a word: encoding hashes, decoding names the id."""

    def encode(self, text):
        return [crc32(word.encode()) % VOCABULARY for word in text.split()]

    def decode(self, ids):
        return "".join(f" w{number}" for number in ids)


class DictStore(dict):
    """`pyweb.api.keeping.Store` in memory."""

    async def get(self, key):
        return dict.get(self, key)

    async def put(self, key, text):
        self[key] = text

    async def remove(self, prefix):
        for key in [key for key in self if key.startswith(prefix)]:
            del self[key]


@pytest.fixture(scope="module")
def device():
    device = CachingDevice()
    yield device
    device.close()


async def with_vocabulary(read, size):
    """The tiny model carries no vocabulary: gives it one, in which the last word ends a reply."""
    gguf = await read_gguf(read, size)
    words = {"tokenizer.ggml.tokens": [f"w{i}" for i in range(VOCABULARY)], "tokenizer.ggml.eos_token_id": 226}
    return replace(gguf, metadata=gguf.metadata | words)


@pytest.fixture(scope="module")
def open_assistant(device):
    """Loads the tiny model: open_assistant() -> a new assistant."""

    async def tokenizer(gguf):
        return Tokenizer(Words(), Words(), {})

    async def source():
        return FileSource(device, FIXTURES / "tiny_tied.gguf")

    async def same_device():
        return device

    def load(open_device=same_device, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "read_gguf", with_vocabulary)
            return asyncio.run(Assistant.load(open_device, source, tokenizer, **options))

    return load


@pytest.fixture
def assistant(open_assistant):
    return open_assistant()


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


def ask(assistant, question=QUESTION, **options):
    return asyncio.run(assistant.ask(question, **{"max_tokens": 10, "mode": "fixed:8"} | options))


def remember(assistant, *arguments):
    asyncio.run(assistant.remember(*arguments))


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
    assert all(part in assistant._keeping.costs_key for part in ("SwiftShader", MODEL, pyweb.__version__))


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


def talk(chat, question, **options):
    return asyncio.run(chat.ask(question, **{"max_tokens": 8, "mode": "loop"} | options))


@pytest.mark.parametrize("mode", ["greedy", "loop", "fixed:8", "adaptive"])
@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.0, seed=3, presence_penalty=0.5)], ids=["", "drawn"])
def test_follow_ups_give_what_a_fresh_prefill_gives(assistant, mode, sampling):
    assistant.engine.calibration = COSTS
    remember(assistant, "conversation")
    chat = assistant.chat(text="the fog comes in from the sea", system="be brief")
    options = {"mode": mode, "sampling": sampling}
    asyncio.run(assistant.engine.prepare(mode))  # its check empties the cache
    first = talk(chat, QUESTION, **options)
    second = talk(chat, "And then ?", **options)
    third = talk(chat, "And last ?", **options)
    for before, answer in ((first, second), (second, third)):
        shared = [*before.prompt_ids, *before.reply_ids]
        assert answer.prompt_ids[: len(shared)] == shared
        assert answer.reused == len(shared) - (before.finish_reason != "stop") and answer.dropped == 0
    generate = assistant.engine.generate(
        third.prompt_ids,
        max_tokens=8,
        stops=assistant._stops,
        mode="greedy",
        sampling=sampling or Sampling(),
        reuse=False,
    )
    assert asyncio.run(generate).ids == third.reply_ids


def test_a_conversation_that_outgrows_the_context_drops_its_oldest_turns(assistant):
    chat = assistant.chat(text="the page stays where it is", system="and so does this")
    answers = [talk(chat, f"Question number {i} " + "of many words " * 4, max_tokens=20) for i in range(5)]
    material = assistant.tokenizer.encode_untrusted("the page stays where it is")
    for answer in answers:
        ids = answer.prompt_ids
        assert any(ids[at : at + len(material)] == material for at in range(len(ids)))
        assert len(ids) + 20 <= assistant.engine.context
    dropped = [answer.dropped for answer in answers]
    assert dropped[0] == 0 and sum(dropped) > 0
    said = [[note for note in answer.notes if "outgrown" in note] for answer in answers]
    assert [bool(notes) for notes in said] == [count > 0 for count in dropped]
    assert len(chat.conversation.turns) == 5 - sum(dropped)


def test_a_full_context_ends_the_reply(assistant):
    answer = ask(assistant, text="word " * 70, max_tokens=500)
    assert answer.finish_reason == "length"
    assert len(answer.prompt_ids) + len(answer.reply_ids) == assistant.engine.context


def test_a_question_that_fails_leaves_the_conversation_as_it_was(assistant):
    chat = assistant.chat(text="some text")
    talk(chat, "One ?")
    turns = chat.conversation.turns
    for question, options, error in (
        ("", {}, UsageError),
        ("word " * 200, {}, PromptTooLongError),
        ("Two ?", {"mode": "fixed:3"}, UsageError),
        ("Two ?", {"stop": [""]}, UsageError),
        ("Two ?", {"stopped": lambda: True}, StoppedError),
    ):
        with pytest.raises(error):
            talk(chat, question, **options)
        assert chat.conversation.turns == turns
    assert talk(chat, "Two ?").reused > 0


def test_a_stopped_reply_stays_in_the_conversation(assistant):
    chat, seen = assistant.chat(), []
    answer = talk(chat, QUESTION, max_tokens=60, on_text=seen.append, stopped=lambda: len(seen) > 3)
    assert answer.finish_reason == "cancelled" and answer.reply_ids
    assert chat.conversation.turns[0].reply == tuple(answer.reply_ids)
    follow_up = talk(chat, "Two ?")
    assert follow_up.reused == len(answer.prompt_ids) + len(answer.reply_ids) - 1


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


class LosingDevice:
    """A device that is lost after so many read-backs."""

    def __init__(self, device, left):
        self._device, self.left, self.closed = device, left, False

    def __getattr__(self, name):
        return getattr(self._device, name)

    async def collect(self, ticket):
        self.left -= 1
        data = await self._device.collect(ticket)
        if self.left < 0:
            raise DeviceLostError("The GPU device was lost (test).")
        return data

    def close(self):
        self.closed = True


def losing(device, *left):
    """open_device that gives devices which are lost after so many read-backs each; the last one lasts."""
    made = []

    async def open_device():
        made.append(LosingDevice(device, left[len(made)] if len(made) < len(left) else 1 << 30))
        return made[-1]

    return open_device, made


def load_collects(device, open_assistant):
    """Read-backs that loading takes."""
    open_device, made = losing(device)
    open_assistant(open_device)
    return (1 << 30) - made[0].left


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_lost_device_is_recovered_once_by_itself(device, open_assistant, after):
    """Idle (before the first read-back of the question) or within the reply: no text twice, none missing."""
    loading = load_collects(device, open_assistant)
    open_device, made = losing(device, loading + after)
    assistant = open_assistant(open_device)
    pieces, stages = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "read_gguf", with_vocabulary)
        answer = ask(
            assistant, mode="loop", max_tokens=24, on_text=pieces.append, on_progress=lambda *p: stages.append(p[0])
        )
    assert len(made) == 2 and made[0].closed and assistant.device is made[1]
    assert "".join(pieces) == answer.answer and "model" in stages
    assert answer.reply_ids == ask(open_assistant(), mode="loop", max_tokens=24).reply_ids


def test_a_device_lost_again_is_an_error(device, open_assistant):
    loading = load_collects(device, open_assistant)
    open_device, made = losing(device, loading + 3, loading + 3)
    assistant = open_assistant(open_device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "read_gguf", with_vocabulary)
        with pytest.raises(DeviceLostError):
            ask(assistant, mode="loop", max_tokens=24)
        assert len(made) == 2
        chat = assistant.chat(text="some text")
        assert talk(chat, "One ?").reply_ids and len(made) == 3


def test_a_device_lost_while_loading_is_tried_once_more(device, open_assistant):
    open_device, made = losing(device, 1)
    assert ask(open_assistant(open_device), mode="loop", max_tokens=3).reply_ids and len(made) == 2
    open_device, made = losing(device, 1, 1)
    with pytest.raises(DeviceLostError):
        open_assistant(open_device)
    assert len(made) == 2 and all(device.closed for device in made)


def test_closing_while_answering(device, open_assistant):
    open_device, made = losing(device)
    assistant = open_assistant(open_device)

    def close(text):
        assistant.close()
        made[0].left = 0

    with pytest.raises(StoppedError, match="closed"):
        ask(assistant, mode="loop", max_tokens=24, on_text=close)
    assert len(made) == 1
