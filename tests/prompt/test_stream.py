import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyweb.prompt import TextStream


def byte_decoder(table):
    return lambda ids: b"".join(table[number] for number in ids).decode("utf-8", "replace")


def stream(decode, pushes):
    """What each push gave, and at the end what `finish` gave."""
    text = TextStream(decode)
    return [text.push(ids) for ids in pushes] + [text.finish()]


def chunks(ids, sizes):
    start = 0
    for size in sizes:
        yield ids[start : start + size]
        start += size
    yield ids[start:]


BYTES = [bytes([byte]) for byte in range(256)]


def test_a_character_comes_whole():
    assert stream(byte_decoder(BYTES), [[byte] for byte in "aé€🙂b".encode()]) == [
        *("a", "", "é", "", "", "€", "", "", "", "🙂", "b", "")
    ]


def test_what_is_certain_comes_at_once():
    assert stream(byte_decoder([b"x \xf0\x9f", b"\x99\x82 y"]), [[0], [1]]) == ["", "x 🙂 y", ""]
    assert stream(byte_decoder(BYTES), [list("ab🙂".encode()[:-1])]) == ["ab", "\ufffd"]


@given(st.text(), st.lists(st.integers(0, 9)))
def test_text_in_single_bytes(text, sizes):
    given_out = stream(byte_decoder(BYTES), chunks(list(text.encode()), sizes))
    assert "".join(given_out) == text
    assert "\ufffd" in text or not any("\ufffd" in part for part in given_out)


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=60), st.lists(st.integers(0, 9)))
def test_any_bytes_join_to_what_decode_gives(table, sizes):
    ids = list(range(len(table)))
    decode = byte_decoder(table)
    assert "".join(stream(decode, chunks(ids, sizes))) == decode(ids)


@given(st.lists(st.sampled_from([0x80, 0xC3, 0xE2, 0xF0, 0x9F, 0xFF, 0x41]), max_size=80))
def test_bytes_that_are_no_text(ids):
    decode = byte_decoder(BYTES)
    assert "".join(stream(decode, [[number] for number in ids])) == decode(ids)


@pytest.mark.parametrize("ids", [[0x41] * 3000, [0xFF] * 3000, list("🙂".encode()) * 750])
def test_the_work_for_a_token_does_not_grow(ids):
    lengths = []
    decode = byte_decoder(BYTES)

    def counted(part):
        lengths.append(len(part))
        return decode(part)

    assert "".join(stream(counted, [[number] for number in ids])) == decode(ids)
    assert max(lengths) <= 12 and len(lengths) <= 20 * len(ids)


def dropping_first_space(table):
    """As SentencePiece decoders do."""
    return lambda ids: "".join(table[number] for number in ids).removeprefix(" ")


@given(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=30))
def test_only_the_first_space_of_a_reply_is_dropped(ids):
    decode = dropping_first_space([" a", " ", "b", "\n"])
    assert "".join(stream(decode, [[number] for number in ids])) == decode(ids)


def test_real_tokens(tokenizer, texts):
    for text in texts:
        ids = tokenizer.encode(text)
        assert "".join(stream(tokenizer.decode, [[number] for number in ids])) == text


def test_empty_tokens_between_two_halves_of_a_character():
    table = [b"\xc2", b"", b"\x80"]
    decode = lambda ids: b"".join(table[i] for i in ids).decode(errors="replace")  # noqa: E731
    assert "".join(stream(decode, [[0, *[1] * 20, 2]])) == "\x80"
