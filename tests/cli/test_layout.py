"""The site's URLs, and that nothing else has one."""

import hashlib
import json
from pathlib import Path

import pytest

from pyweb.cli.layout import Layout


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    model = tmp_path_factory.mktemp("models") / "tiny.gguf"
    model.write_bytes(b"GGUF")
    return Layout({"tiny.gguf": model})


@pytest.mark.parametrize(
    "path", ["", "index.html", "run.html", "demo/article.html", "js_bridge/client.js", "runtime/pyodide.mjs"]
)
def test_files(layout, path):
    assert layout.resolve(path).is_file()


@pytest.mark.parametrize(
    "path",
    [
        "../pyproject.toml",
        "js_bridge/../../pyproject.toml",
        "runtime/../../models/smollm2-135m-instruct.gguf",
        "js_bridge//etc/passwd",
        "/etc/passwd",
        "demo/..\\..\\x",
        ".git/config",
        "models/other.gguf",
        "models/../tiny.gguf",
        "js_bridge",
        "none.html",
    ],
)
def test_nothing_else(layout, path):
    assert layout.resolve(path) is None


def test_links_lead_nowhere(tmp_path, layout, monkeypatch):
    (tmp_path / "link.html").symlink_to("/etc/hosts")
    monkeypatch.setitem(layout._folders, "", tmp_path)
    assert layout.resolve("link.html") is None


def test_lock_names_the_wheel_as_it_is(layout):
    lock = json.loads(layout.resolve("runtime/pyodide-lock.json"))
    entry = lock["packages"]["pyweb"]
    wheel = layout.resolve(f"runtime/{entry['file_name']}")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == entry["sha256"]
    for package in lock["packages"].values():
        assert isinstance(layout.resolve(f"runtime/{package['file_name']}"), Path), package["name"]
        assert set(package["depends"]) <= set(lock["packages"])


def test_folder_is_the_same_site(layout, tmp_path):
    layout.write(tmp_path)
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"index.html", "js_bridge/worker.js", "runtime/pyodide.asm.wasm", "models/tiny.gguf"} <= names
    for name in names:
        found = layout.resolve(name)
        assert (found if isinstance(found, bytes) else found.read_bytes()) == (tmp_path / name).read_bytes()
    assert [row["url"] for row in json.loads((tmp_path / "models/index.json").read_text())] == ["tiny.gguf"]
