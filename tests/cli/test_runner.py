"""What the command line makes of models, errors, pages and machines."""

import gzip
import io
import urllib.request

import pytest

from pyweb import errors
from pyweb.cli import browser, runner
from pyweb.cli.console import Progress
from pyweb.cli.snapshot import page_address


def test_page_errors_become_their_python_class():
    message = {"event": "error", "name": "NoAdapterError", "message": "None.", "remedy": ""}
    error = runner._as_exception(message)
    assert isinstance(error, errors.NoAdapterError)
    assert str(error).startswith("None. Turn on")


@pytest.mark.parametrize("name", ["TypeError", "__all__", "Path"])
def test_other_errors_keep_their_name(name):
    error = runner._as_exception({"name": name, "message": "Odd.", "remedy": "Reload."})
    assert (error.name, str(error)) == (name, "Odd. Reload.")


def test_model_addresses(tmp_path, embedded_model):
    base = "http://127.0.0.1:1/"
    url = "https://example.org/some%20model.gguf"
    assert runner.model_for_page(url, None, base)["url"] == url
    known = runner.model_for_page("smollm2-135m-instruct", embedded_model, base)
    assert known["url"] == f"{base}models/smollm2-135m-instruct.gguf"
    assert len(known["parts"]) == 6
    own = tmp_path / "my model.gguf"
    own.write_bytes(b"GGUF")
    described = runner.model_for_page(str(own), own, base)
    assert described["url"] == f"{base}models/my%20model.gguf"
    assert (described["size"], len(described["parts"])) == (4, 1)


def fetched(page: str) -> bytes:
    with page_address(page) as address, urllib.request.urlopen(address) as reply:
        return reply.read()


def test_local_page_has_its_own_address(tmp_path):
    (tmp_path / "a b.html.gz").write_bytes(gzip.compress("<p>Grüße".encode()))
    assert fetched(str(tmp_path / "a b.html.gz")).decode("utf-8-sig") == "<p>Grüße"


def test_local_page_keeps_its_encoding(tmp_path):
    content = "<meta charset=latin-1><p>Grüße".encode("latin-1")
    (tmp_path / "a.html").write_bytes(content)
    assert fetched(str(tmp_path / "a.html")) == content


def test_url_is_opened_as_it_is():
    with page_address("https://example.org/x") as address:
        assert address == "https://example.org/x"


def test_switches(monkeypatch):
    monkeypatch.setenv("PYWEB_BROWSER_FLAGS", "--one '--two=a b'")
    software, checked = browser.flags("software", False), browser.flags("software", True)
    assert software[-2:] == ["--one", "--two=a b"]
    assert set(software) - set(checked) == set(browser.UNCHECKED)
    assert "--use-webgpu-adapter=swiftshader" not in browser.flags("hardware", False)


def test_named_browser_must_exist(monkeypatch):
    monkeypatch.setenv("CHROME", "/no/such/chrome")
    with pytest.raises(errors.BrowserError, match="/no/such/chrome"):
        browser.find_browser()


def test_progress_is_plain_lines_without_a_terminal():
    stream = io.StringIO()
    progress = Progress(stream)
    progress.update("model", 1e6, 98e6)
    progress.update("model", 98e6, 98e6)
    progress.update("prefill", 3, 10, "tokens")
    progress.finish()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "model ..."
    assert lines[1].startswith("model  98.0 MB of 98.0 MB")
    assert lines[3].startswith("prefill  3 of 10  tokens")
