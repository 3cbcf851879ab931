"""What `pyweb.load` pins, and that it is refused outside of a browser."""

import asyncio
import re
import tomllib
from pathlib import Path

import pytest

import pyweb
from pyweb.api import standalone
from pyweb.cli import parts, runtime
from pyweb.errors import SetupError, UsageError
from pyweb.storage import files, wheel


def test_the_tokenizer_is_the_one_that_our_own_worker_uses():
    (package,) = [package for package in parts.NPM_PACKAGES if "tokenizers" in package.name]
    assert f"/{package.name}@{package.version}/" in standalone.TOKENIZERS
    assert files.sha256_file(runtime.runtime_folder() / "tokenizers.js") == standalone.TOKENIZERS_SHA256


def test_page_wheels_are_those_of_the_runtime():
    pinned = {f"{wheel.name}=={wheel.version}" for wheel in parts.PYPI_WHEELS}
    assert {name.lower() for name in standalone.PAGE_WHEELS} <= pinned


def test_the_wheel_requires_what_holds_in_pyodide():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    here = [item for item in project["dependencies"] if not re.search(r"sys_platform != 'emscripten'", item)]
    assert tuple(here) == wheel.REQUIRES


@pytest.mark.parametrize("call", [lambda: pyweb.load("x.gguf"), lambda: pyweb.page_of("<p>x")])
def test_needs_a_browser(call):
    with pytest.raises(UsageError, match="Pyodide in a browser"):
        asyncio.run(call())


def test_a_page_without_micropip_says_what_to_do(monkeypatch):
    monkeypatch.setattr(standalone, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="micropip is not there") as caught:
        asyncio.run(standalone._install_page_wheels())
    assert "loadPackage('micropip')" in caught.value.remedy


def test_nothing_else_is_made_up():
    with pytest.raises(AttributeError, match="no attribute 'loader'"):
        _ = pyweb.loader
