"""The benchmark's smoke version on a tiny model, the folder that can be carried away, and a run beside a peer."""

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pyweb.cli import bench_page, peers
from pyweb.cli import browser as browsers
from pyweb.cli.console import Progress
from pyweb.cli.main import main

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_chat.gguf"
HERE = ["--adapter", "software", "--port", "8965"]


def test_smoke(tmp_path, capsys):
    out = tmp_path / "result.json"
    assert main(["bench", "--smoke", "--model", str(TINY), "--fresh", "--out", str(out), *HERE]) == 0
    result = json.loads(out.read_text())
    assert {"modes", "widths", "prefill", "roles", "host", "cuts"} <= result.keys()
    assert [row["width"] for row in result["widths"]["rows"]] == [1, 2]
    assert not any(task["different"] for task in result["modes"]["tasks"])
    assert all(row["milliseconds"]["median"] > 0 for row in result["modes"]["rows"])
    printed = capsys.readouterr().out
    for table in result["tables"]:
        assert f"### {table['title']}\n\n| {table['columns'][0]} |" in printed


def test_the_page_s_error_is_the_command_s(capsys):
    assert main(["bench", "--model", str(TINY), "--parts", "nonsense", *HERE]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("UsageError: ")


class Reports(SimpleHTTPRequestHandler):
    """A static server that keeps what pages send."""

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.reports.append(json.loads(body))
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def static():
    """Serves a folder; `reports` of the server are the bodies of posts."""
    servers = []

    def serve(folder):
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Reports, directory=folder))
        server.reports = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_folder_runs_by_its_addresses(tmp_path, static, capsys):
    folder = tmp_path / "site"
    assert main(["bench", "--folder", str(folder), "--shape", "tiny", "--peers", "wllama"]) == 0
    addresses = capsys.readouterr().out.split()
    assert addresses == [
        "bench.html?shape=tiny&auto=1",
        "peers.html?engine=pyweb&shape=tiny&auto=1",
        "peers.html?engine=wllama&shape=tiny&auto=1",
    ]
    server = static(folder)
    base = f"http://127.0.0.1:{server.server_address[1]}/"
    small = "&prompt=40&tokens=24&runs=2&report=/report"
    with bench_page.pages(browsers.flags("software", False), True, Progress(), 300) as pages:
        for address in addresses[1:]:
            pages.run(f"{base}{address}{small}", address)
    ours, theirs = server.reports
    assert (ours["engine"], ours["backend"], ours["tokens"]) == ("pyweb", "webgpu", 24)
    # Without shader-f16 llama.cpp takes the CPU: the page must say so.
    assert (theirs["engine"], theirs["backend"], theirs["tokens"]) == ("wllama", "cpu", 24)
    assert theirs["version"] == peers.PACKAGES["wllama"][0].version
    for report in (ours, theirs):
        assert report["promptTokens"] == pytest.approx(40, abs=1)
        assert 0 < report["decode"]["min"] <= report["decode"]["median"] <= report["decode"]["max"]
        assert report["firstToken"]["min"] > 0


def test_a_folder_with_other_files_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("x")
    assert main(["bench", "--folder", str(tmp_path), "--shape", "tiny"]) == 1
    assert "holds other files" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_peers_go_on_when_one_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peers, "packages", lambda named, progress: {"packages": tmp_path})
    command = ["bench", "--peers", "wllama", "--model", str(TINY), *HERE]
    assert main([*command, "--runs", "1", "--tokens", "24", "--prompt-tokens", "40", "--json"]) == 1
    out, err = capsys.readouterr()
    rows = {(row["name"], row["set"]): row for row in json.loads(out)["rows"]}
    ours = {(f"pyweb, {mode}", kind) for mode in ("loop", "adaptive") for kind in ("visitor", "developer")}
    assert set(rows) == ours | {("wllama", "developer")}
    assert "packages/wllama/index.js" in rows["wllama", "developer"]["error"]
    assert all(rows[name]["backend"] == "webgpu" for name in ours)
    assert err.splitlines()[-1] == "BrowserError: 1 of 5 runs failed: wllama (developer)."
