"""The bridge's modules as blobs that name each other."""

import pytest

from pyweb import resources
from pyweb.device.modules import linked, needs
from pyweb.errors import SetupError

SOURCES = {
    "a.js": "import { b } from './b.js';\nimport './c.js';\nexport { d } from \"./d.js\";\nconst e = import('./c.js');",
    "b.js": "import { d } from './d.js'; import fs from 'node:fs';",
    "c.js": "export const text = 'from ../b.js';",
    "d.js": "",
}


def link(name, sources, urls=None):
    made = []

    def make_url(source):
        made.append(source)
        return f"blob:{len(made)}"

    return linked(name, sources.__getitem__, {} if urls is None else urls, make_url), made


def test_needs():
    assert needs(SOURCES["a.js"]) == ["b.js", "c.js", "d.js"]
    assert needs(SOURCES["b.js"]) == ["d.js"]
    assert needs(SOURCES["c.js"]) == []


def test_modules_are_made_once_and_after_what_they_need():
    url, made = link("a.js", SOURCES)
    assert url == "blob:4"
    assert made == [
        "",
        "import { d } from 'blob:1'; import fs from 'node:fs';",
        SOURCES["c.js"],
        "import { b } from 'blob:2';\nimport 'blob:3';\nexport { d } from \"blob:1\";\nconst e = import('blob:3');",
    ]


def test_what_was_made_before_is_taken():
    url, made = link("b.js", SOURCES, {"d.js": "blob:old"})
    assert made == ["import { d } from 'blob:old'; import fs from 'node:fs';"] and url == "blob:1"


def test_a_circle_is_refused():
    with pytest.raises(SetupError, match="a.js and b.js import each other"):
        link("a.js", {"a.js": "import './b.js'", "b.js": "import './a.js'"})


@pytest.mark.parametrize("name", ["gpu.js", "weights.js", "tokenizer.js", "store.js", "snapshot.js"])
def test_the_modules_that_stand_alone_are_linked_whole(name):
    texts = {path.name: path.read_text(encoding="utf-8") for path in resources.folder("js_bridge").glob("*.js")}
    _, made = link(name, texts)
    assert not any(needs(source) or "import.meta" in source for source in made)
