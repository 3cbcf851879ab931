import base64

from pyweb.speculation.memory import MEMORY_TOKENS, Memory


def test_oldest_tokens_go_first():
    memory = Memory()
    memory.add(range(MEMORY_TOKENS))
    memory.add([7, 8])
    assert len(memory.tokens) == MEMORY_TOKENS
    assert list(memory.tokens[:1]) == [2] and list(memory.tokens[-2:]) == [7, 8]


def test_a_long_reply_keeps_its_end():
    memory = Memory()
    memory.add(range(MEMORY_TOKENS + 5))
    assert memory.tokens[0] == 5
    text = base64.b64encode(bytes(4 * MEMORY_TOKENS) + (7).to_bytes(4, "little")).decode()
    assert list(Memory.from_text(text).tokens) == [0] * (MEMORY_TOKENS - 1) + [7]


def test_text_round_trip_and_damage():
    memory = Memory([1, 2, 4_000_000_000])
    assert Memory.from_text(memory.to_text()).tokens == memory.tokens
    for damaged in ("", "no base64!", "A", "äöü", "QUJD"):
        assert not Memory.from_text(damaged).tokens
    assert list(Memory.from_text(memory.to_text()[:8]).tokens) == [1]


def test_forget_erases():
    memory = Memory([1, 2])
    memory.forget()
    assert not memory.tokens and Memory.from_text(memory.to_text()).tokens == memory.tokens
