import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyweb.errors import UsageError
from pyweb.prompt import StopStream


def decoder(pieces):
    return lambda ids: b"".join(pieces[number] for number in ids).decode("utf-8", "replace")


def run(pieces, stops, sizes=()):
    """(text, ids kept) of all pieces, pushed so many at a time, then one at a time."""
    stream, ids = StopStream(decoder(pieces), stops), list(range(len(pieces)))
    out, start = [], 0
    for size in [*sizes, *[1] * len(ids)]:
        out.append(stream.push(ids[start : start + size]))
        start += size
        if stream.kept is not None:
            break
    return "".join(out) + stream.finish(), stream.kept


def test_without_stop_strings_everything_comes():
    assert run([b"a", b"b", b"c"], []) == ("abc", None)


def test_a_stop_string_across_tokens():
    assert run([b"one ", b"t", b"wo", b" three", b" four"], ["two"]) == ("one ", 1)
    assert run([b"one tw", b"o three"], ["two"]) == ("one ", 1)
    assert run([b"one", b"two"], ["one"]) == ("", 0)


def test_what_only_looks_like_a_beginning_comes_later():
    stream = StopStream(decoder([b"a\n", b"\n", b"b"]), ["\n\nUser"])
    assert [stream.push([0]), stream.push([1]), stream.push([2])] == ["a", "", "\n\nb"]
    assert stream.finish() == "" and stream.kept is None


def test_held_text_comes_at_the_end():
    stream = StopStream(decoder([b"so EN"]), ["END"])
    assert (stream.push([0]), stream.finish()) == ("so ", "EN")


def test_a_character_of_several_tokens_in_a_stop_string():
    smile = "🙂".encode()
    assert run([b"x", smile[:2], smile[2:], b"y"], ["🙂"]) == ("x", 1)


def test_the_earliest_of_several_counts():
    assert run([b"a b c"], ["c", "b"]) == ("a ", 1)


@pytest.mark.parametrize("stops", [[""], ["x", ""], [3]])
def test_an_empty_stop_string(stops):
    with pytest.raises(UsageError, match="stop string"):
        StopStream(decoder([]), stops)


WORDS = st.text("ab\u20ac", max_size=3)


@given(st.lists(WORDS, max_size=8), st.lists(WORDS.filter(bool), max_size=3), st.lists(st.integers(0, 4), max_size=6))
def test_the_cut_is_where_the_text_says_however_ids_arrive(words, stops, sizes):
    text, kept = run([word.encode() for word in words], stops, sizes)
    whole = "".join(words)
    # A stop string counts as soon as the text holds it: the first that is complete, then the one that begins first.
    ends = [(whole.find(stop) + len(stop), stop) for stop in stops if stop in whole]
    assert (kept is None) == (not ends)
    assert whole.startswith(text)
    if kept is None:
        assert text == whole
    else:
        assert not any(stop in text for stop in stops)
        assert any(whole[len(text) :].startswith(stop) for stop in stops)
        assert "".join(words[:kept]).startswith(text)
        assert kept == 0 or len("".join(words[: kept - 1])) < len(text)
        assert run([word.encode() for word in words], stops) == (text, kept)
