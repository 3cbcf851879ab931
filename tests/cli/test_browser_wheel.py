"""The wheel that is served: compiled where node is, source elsewhere."""

import zipfile

import pytest

from pyweb.cli import browser_wheel, fetching, runtime
from pyweb.kernels.compose import TEMPLATES
from pyweb.storage import wheel


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    real = runtime.runtime_folder()
    monkeypatch.setattr(runtime, "runtime_folder", lambda: real)
    monkeypatch.setenv("PYWEB_CACHE", str(tmp_path))


def test_source_without_node(monkeypatch):
    monkeypatch.setattr(fetching, "installed", lambda name: None)
    names = zipfile.ZipFile(browser_wheel.browser_wheel()).namelist()
    assert set(zipfile.ZipFile(wheel.make_wheel()).namelist()) <= set(names)
    assert [name for name in names if name.startswith(f"pyweb/_data/{TEMPLATES}/tmpl_") and name.endswith(".py")]


def test_compiled_once_with_node(monkeypatch):
    path = browser_wheel.browser_wheel()
    names = zipfile.ZipFile(path).namelist()
    assert "pyweb/api/service.pyc" in names and "pyweb/api/service.py" not in names
    assert "pyweb/_data/shaders/matvec.wgsl" in names
    assert [name for name in names if name.startswith(f"pyweb/_data/{TEMPLATES}/tmpl_") and name.endswith(".pyc")]
    monkeypatch.setattr(runtime, "compile_archives", None)
    assert browser_wheel.browser_wheel() == path


def test_node_that_fails_gives_source(monkeypatch):
    monkeypatch.setattr(fetching, "tool", lambda name: "/bin/false")
    assert "pyweb/api/service.py" in zipfile.ZipFile(browser_wheel.browser_wheel()).namelist()
