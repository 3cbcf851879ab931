"""Conversations on a tiny model: what follow-up questions reuse, drop and leave as it was."""

import asyncio

import pytest

from pyweb.engine import Sampling
from pyweb.errors import PromptTooLongError, StoppedError, UsageError
from tests.api.conftest import COSTS, QUESTION, remember, talk


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
