"""Decodes a page's bytes the way a browser would, as far as the bytes themselves tell."""

import codecs
import re

__all__ = ["decode"]

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A browser reads no further for a declaration (HTML standard, "prescan a byte stream").
_PRESCAN = 1024
_META = re.compile(rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I)
# Guessing reads this much: enough to tell encodings apart, quick on a page of megabytes.
_SAMPLE = 65_536

# WHATWG Encoding: labels whose decoder is a superset of the encoding named, and UTF-16,
# which a declaration that could be read as ASCII can't be.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
# Python has codecs, such as unicode_escape and punycode, that no page may ask for.
_ALLOWED = {
    *_SUPERSETS.values(),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *(f"cp{page}" for page in (866, 1250, 1251, 1253, 1255, 1256, 1257, 1258)),
    *("koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "euc_jp", "iso2022_jp"),
}


def _declared(data: bytes) -> str | None:
    """Codec that the page's own meta element (or XML declaration) names, where we know it."""
    match = _META.search(data[:_PRESCAN])
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii")).name
    except (LookupError, ValueError):
        return None
    name = _SUPERSETS.get(name, name)
    return name if name in _ALLOWED else None


def _guessed(data: bytes) -> str:
    # Only files need it, not the strings that a browser hands over.
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    # Browsers' own fallback in most locales.
    return best.encoding if best else "cp1252"


def decode(data: bytes) -> str:
    """Text of an HTML file: by byte order mark, valid UTF-8, declaration, or a guess, in that order.

    Bytes that don't fit become U+FFFD; nothing is raised.
    """
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace")
    declared = _declared(data)
    # A wrong declaration is common, a legacy text that happens to be valid UTF-8 is not.
    # Only ISO-2022-JP looks like ASCII.
    if declared != "iso2022_jp":
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return data.decode(declared or _guessed(data), "replace")
