import codecs

import pytest

from pyweb.page.charset import decode

TEXT = "Café zwölf"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TEXT.encode(), TEXT),
        (codecs.BOM_UTF8 + TEXT.encode(), TEXT),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), TEXT),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), TEXT),
        (b'<meta charset="iso-8859-1">\x93quoted\x94 \xe9', '<meta charset="iso-8859-1">“quoted” é'),
        (b"<meta http-equiv=x content='text/html; charset=windows-1251'>\xcc\xe8\xf0", "Мир"),
        (b"<meta charset=shift_jis>" + "日本語".encode("cp932"), "日本語"),
        (b"<meta charset=iso-2022-jp>" + "日本語".encode("iso2022_jp"), "日本語"),
        (b'<?xml version="1.0" encoding="koi8-r"?>' + "мир".encode("koi8-r"), "мир"),
    ],
)
def test_decodes_as_the_bytes_say(data, text):
    assert decode(data).endswith(text)


def test_valid_utf8_wins_over_a_wrong_declaration():
    assert decode(b"<meta charset=latin1>" + TEXT.encode()).endswith(TEXT)


def test_undeclared_legacy_text_is_guessed():
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    assert decode(text.encode("cp1251")) == text


@pytest.mark.parametrize("name", ["unicode_escape", "punycode", "undefined", "rot13", "no-such", "utf-7"])
def test_codecs_that_no_browser_has_are_ignored(name):
    assert "\\u0041" in decode(f"<meta charset={name}>\\u0041 é".encode("latin-1"))


def test_broken_bytes_become_replacement_characters():
    assert decode(b"<meta charset=utf-8>ab\xffcd") == "<meta charset=utf-8>ab\ufffdcd"
