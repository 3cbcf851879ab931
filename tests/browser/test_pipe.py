"""The command line's own way to a browser: no chromedriver, a pipe."""

import pytest

from pyweb.cli import browser as browsers
from pyweb.cli.main import main
from pyweb.cli.snapshot import page_address, take_snapshot
from pyweb.errors import NetworkError

PAGE = """<title>Late</title><p id=p>early</p>
<script>setTimeout(() => { alert(1); p.textContent = 'Grüße'; }, 100)</script>"""


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    profile = tmp_path_factory.mktemp("piped")
    with browsers.Browser(profile, browsers.flags("software", checks=True)) as running:
        yield running
    assert not running.alive()


def test_snapshot_of_a_local_page_waits_for_its_scripts(piped, tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    with page_address(str(tmp_path / "page.html")) as address:
        snapshot = take_snapshot(piped.pipe, address)
    assert snapshot["title"] == "Late"
    assert "Grüße" in snapshot["html"]
    assert snapshot["url"] == address


def test_unreachable_page_is_a_network_error(piped):
    with pytest.raises(NetworkError, match="could not be opened"):
        take_snapshot(piped.pipe, "http://127.0.0.1:9/")


def test_missing_page_is_a_network_error(piped, tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    with page_address(str(tmp_path / "page.html")) as address, pytest.raises(NetworkError, match="404"):
        take_snapshot(piped.pipe, address.replace("page.html", "none.html"))


def test_ask_without_an_adapter_fails_by_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "page.html").write_text("<p>Some text.", encoding="utf-8")
    monkeypatch.setenv("PYWEB_BROWSER_FLAGS", "--disable-gpu --disable-software-rasterizer")
    arguments = ["--fresh", "--adapter", "hardware", "--port", "8799", "--page", str(tmp_path / "page.html")]
    assert main(["ask", *arguments, "What?"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("NoAdapterError: ")
