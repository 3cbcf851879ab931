"""The embedded model's own tokenizer and template over native `tokenizers`."""

import json

import pytest
import tokenizers

from pyweb.prompt import ChatTemplate, Tokenizer, bos_id, named_specials, special_ids, tokenizer_json
from pyweb.weights.gguf import parse_gguf

TEXTS = (
    "The quick brown fox doesn't jump over 13 lazy dogs, it'll SLEEP; I'd say we've won.",
    "Größe, naïve café, Ελληνικά, Русский текст",
    "日本語のテキスト。中文, 한국어, עברית, العربية ١٢٣, हिन्दी १२३",
    "emoji 🙂👩‍👩‍👧‍👦🏳️‍🌈 flags 🇩🇪 and ½ ² Ⅷ ٣ numbers 3.14159, 1,000,000 and 0x1F",
    "def f(x):\n    return {'a': [x**2, x // 3]}  # code\n\n\tif (a && b) { c += d->e; }\r\n",
    "  leading and trailing   \n\n\n  white space \t\t here\u00a0and\u3000there \r\n\r\n  ",
    "a\tb  c   d\n e\n  f\n\n",
    '<div class="x">&amp;</div> http://example.org/?q=1&r=2#top C:\\dir\\file.txt',
    "e\u0301 combining, ﬁ ligature, Å Å, \u200bzero width\u200d, \ufffd, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "don't DON'T Don'T 'quoted' it''s 'S 'Re",
    "",
    " ",
    "\n",
)


class Native:
    """Backend over the `tokenizers` package."""

    def __init__(self, content):
        self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))

    def encode(self, text):
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self._tokenizer.decode(ids, skip_special_tokens=False)


@pytest.fixture(scope="session")
def native():
    """Makes a backend from the content of a tokenizer.json."""
    return Native


@pytest.fixture(scope="session")
def texts():
    return TEXTS


@pytest.fixture(scope="session")
def metadata(embedded_model):
    with open(embedded_model, "rb") as file:
        return parse_gguf(file.read(4 << 20)).metadata


@pytest.fixture(scope="session")
def tokenizer(metadata):
    backends = [Native(tokenizer_json(metadata, specials)) for specials in (True, False)]
    return Tokenizer(*backends, special_ids(metadata), bos_id(metadata))


@pytest.fixture(scope="session")
def template(metadata):
    return ChatTemplate(metadata["tokenizer.chat_template"], named_specials(metadata))
