"""The local server: ranges, types, caching, and who may talk to a job."""

import http.client
import json
from pathlib import Path

import pytest

from pyweb.cli.server import Job, LocalServer

DATA = bytes(range(256)) * 40


@pytest.fixture
def served(tmp_path):
    (tmp_path / "a.wasm").write_bytes(DATA)
    (tmp_path / "b.wasm").write_bytes(DATA)
    (tmp_path / "b.wasm.br").write_bytes(b"brotli")
    events = []
    job = Job("secret", {"method": "ask"}, events.append)

    def resolve(path: str):
        if path == "made.json":
            return b"[1]"
        return tmp_path / path if path in ("a.wasm", "b.wasm", "gone.js") else None

    with LocalServer(resolve, port=0, job=job) as server:
        yield server, events


def ask(server, path, method="GET", body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def test_whole_file_with_type_and_isolation(served):
    status, headers, body = ask(served[0], "/a.wasm")
    assert (status, body) == (200, DATA)
    assert headers["Content-Type"] == "application/wasm"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    "asked, first, end",
    [
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, len(DATA)),
        ("bytes=-5", len(DATA) - 5, len(DATA)),
        ("bytes=5-999999", 5, len(DATA)),
        ("bytes=-999999", 0, len(DATA)),
    ],
)
def test_ranges(served, asked, first, end):
    status, headers, body = ask(served[0], "/a.wasm", Range=asked)
    assert (status, body) == (206, DATA[first:end])
    assert headers["Content-Range"] == f"bytes {first}-{end - 1}/{len(DATA)}"


@pytest.mark.parametrize("asked", ["bytes=999999-", "bytes=9-3", "bytes=-0"])
def test_impossible_ranges(served, asked):
    status, headers, _ = ask(served[0], "/a.wasm", Range=asked)
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(DATA)}")


@pytest.mark.parametrize("asked", ["bytes=", "bytes=-", "lines=1-2", "bytes=0-1,4-5"])
def test_other_ranges_give_the_whole(served, asked):
    assert ask(served[0], "/a.wasm", Range=asked)[0] == 200


def test_unchanged_file_is_not_sent_again(served):
    etag = ask(served[0], "/a.wasm")[1]["ETag"]
    status, _, body = ask(served[0], "/a.wasm", If_None_Match=etag)
    assert (status, body) == (304, b"")


def test_brotli_for_a_client_that_takes_it(served):
    status, headers, body = ask(served[0], "/b.wasm", Accept_Encoding="gzip, br;q=1.0")
    assert (status, body, headers["Content-Encoding"]) == (200, b"brotli", "br")
    assert (headers["Content-Type"], headers["Vary"]) == ("application/wasm", "Accept-Encoding")
    again = ask(served[0], "/b.wasm", Accept_Encoding="br", If_None_Match=headers["ETag"])
    assert again[0] == 304 and again[1]["Vary"] == "Accept-Encoding"
    for others in ({}, {"Accept_Encoding": "gzip"}, {"Accept_Encoding": "br", "Range": "bytes=0-"}):
        status, plain, body = ask(served[0], "/b.wasm", **others)
        assert body == DATA and "Content-Encoding" not in plain
        assert (plain["Vary"], plain["ETag"] != headers["ETag"]) == ("Accept-Encoding", True)
    assert "Vary" not in ask(served[0], "/a.wasm", Accept_Encoding="br")[1]


def test_head_has_a_length_and_no_body(served):
    status, headers, body = ask(served[0], "/a.wasm", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(DATA)), b"")


def test_bytes_are_served_by_the_path_suffix(served):
    status, headers, body = ask(served[0], "/made.json?x=1")
    assert (status, headers["Content-Type"], body) == (200, "application/json", b"[1]")


@pytest.mark.parametrize("path", ["/none", "/gone.js", "/%00", "/../etc/passwd"])
def test_nothing_there(served, path):
    assert ask(served[0], path)[0] == 404


def test_foreign_host_is_refused(served):
    assert ask(served[0], "/a.wasm", Host="evil.example")[0] == 403
    assert ask(served[0], "/__event?key=secret", "POST", "[{}]", Host="evil.example")[0] == 404
    assert served[1] == []


def test_job_needs_its_key(served):
    server, events = served
    assert ask(server, "/__job?key=wrong")[0] == 404
    assert ask(server, "/__event?key=wrong", "POST", "[{}]")[0] == 404
    assert json.loads(ask(server, "/__job?key=secret")[2]) == {"method": "ask"}
    assert ask(server, "/__event?key=secret", "POST", '[{"event":"a"},{"event":"b"}]')[0] == 204
    assert [event["event"] for event in events] == ["a", "b"]


def test_taken_port_moves_to_the_next(served):
    with LocalServer(lambda path: None, port=served[0].port) as second:
        assert second.port > served[0].port


def test_foreign_page_gets_neither_isolation_nor_encoding(tmp_path):
    page = tmp_path / "p.html"
    page.write_bytes(b"<p>x")
    with LocalServer(lambda path: Path(page), port=0, foreign=True) as server:
        headers = ask(server, "/p.html")[1]
    assert headers["Content-Type"] == "text/html"
    assert "Cross-Origin-Opener-Policy" not in headers
