"""The local web server: static files with byte ranges, and the messages between a page and a command."""

import hashlib
import io
import json
import mimetypes
import os
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pyweb.cli import precompress
from pyweb.errors import SetupError

__all__ = ["DEFAULT_PORT", "LOOPBACK", "Job", "LocalServer", "Resolve"]

DEFAULT_PORT = 8765
PORTS_TRIED = 50
LAST_PORT = 65535
LOOPBACK = "127.0.0.1"

# A Python installation's own table may be overruled by the system's; these must be right.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".wasm": "application/wasm",
    ".wgsl": "text/plain; charset=utf-8",
    ".whl": "application/zip",
}

HEADERS = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
# Isolation gives fine timers; nothing depends on it.
ISOLATION = {
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Resolve = Callable[[str], Path | bytes | None]
OnReply = Callable[[str, int, int], None]


class Job:
    """What a command wants from the page, and what the page says back.

    Args:
        key: only a page that knows it gets the job and may send events.
        content: the job, given to the page as JSON.
        on_event: called with each message, in order, on the server's threads.
    """

    def __init__(self, key: str, content: dict, on_event: Callable[[dict], None]):
        self.key = key
        self.content = content
        self.on_event = on_event


class LocalServer:
    """Serves on one address of this machine in threads of its own.

    Args:
        resolve: from a URL path without its leading slash to a file, to bytes, or to None.
        port: the first port tried; the next free one is taken.
        job: answers `/__job` and `/__event` where given.
        foreign: the files are somebody else's page: no isolation, and the browser finds out the encoding.
        on_reply: called with path, status and bytes of the body of each reply, on the server's threads.
        host: the address, or a name of it; other machines reach only another one than 127.0.0.1.

    Raises:
        SetupError: no port is free, or the address is none of this machine's.
    """

    def __init__(
        self,
        resolve: Resolve,
        port: int = DEFAULT_PORT,
        job: Job | None = None,
        foreign: bool = False,
        on_reply: OnReply = lambda path, status, length: None,
        host: str = LOOPBACK,
    ):
        bound = {"resolve": staticmethod(resolve), "job": job, "foreign": foreign, "on_reply": staticmethod(on_reply)}
        handler = type("BoundHandler", (_Handler,), bound | {"host": host})
        self._http = _bind(handler, host, port)
        self.port: int = self._http.server_address[1]
        self.url = f"http://{host}:{self.port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> "LocalServer":
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._http.shutdown()
        self._http.server_close()

    def wait(self) -> None:
        """Blocks until the process is interrupted."""
        while self._thread.is_alive():
            self._thread.join(1)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The fixed port must be free again right after a run; on Windows reuse would share it instead.
    allow_reuse_address = os.name != "nt"
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A browser that is closed drops its connections: nothing to report."""


def _bind(handler, host: str, port: int) -> _Server:
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
    except OSError as error:
        raise SetupError(f"{host} is no address of this machine: {error.strerror}.", "Name one with --host.") from error
    last = min(port + PORTS_TRIED - 1, LAST_PORT)
    for candidate in range(port, last + 1) if port else [0]:
        try:
            return _Server((host, candidate), handler)
        except OSError:
            continue
    raise SetupError(f"None of the ports {port} to {last} is free.", "Name one with --port.")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    resolve: Resolve
    job: Job | None
    foreign: bool
    on_reply: OnReply
    host: str

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._answer(body=True)

    def do_HEAD(self):
        self._answer(body=False)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self._host_is_local() and self._is_for_job("/__event"):
            for message in json.loads(body):
                self.job.on_event(message)
            self._send(HTTPStatus.NO_CONTENT, b"")
        else:
            self._send(HTTPStatus.NOT_FOUND, b"")

    def _url(self) -> urllib.parse.SplitResult:
        return urllib.parse.urlsplit(self.path)

    def _is_for_job(self, path: str) -> bool:
        key = urllib.parse.parse_qs(self._url().query).get("key", [""])[0]
        return self.job is not None and self._url().path == path and key == self.job.key

    def _answer(self, body: bool) -> None:
        if not self._host_is_local():
            return self._send(HTTPStatus.FORBIDDEN, b"", body)
        if self._is_for_job("/__job"):
            return self._send(HTTPStatus.OK, json.dumps(self.job.content).encode(), body, ".json")
        path = urllib.parse.unquote(self._url().path).removeprefix("/")
        found = None if "\0" in path else self.resolve(path)
        if found is None or (isinstance(found, Path) and not found.is_file()):
            return self._send(HTTPStatus.NOT_FOUND, b"Not found.", body, ".txt")
        suffix = (found.suffix if isinstance(found, Path) else Path(path).suffix) or ".html"
        self._send_content(found, suffix.lower(), body)

    def _host_is_local(self) -> bool:
        """A foreign name that resolves to this machine must not read from here (DNS rebinding)."""
        name = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        return name in (LOOPBACK, "localhost", "", self.host)

    def _send_content(self, found: Path | bytes, suffix: str, body: bool) -> None:
        found, encoding = self._encoded(found)
        etag, size = _identity(found)
        if self.headers.get("If-None-Match") == etag:
            return self._send(HTTPStatus.NOT_MODIFIED, b"", False, suffix, {"ETag": etag} | encoding)
        part = _range(self.headers.get("Range"), size)
        if part == (0, 0) and size:
            status, headers = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"}
            return self._send(status, b"", body, suffix, headers)
        first, end = part or (0, size)
        headers = {"ETag": etag} | encoding
        if part:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{size}"
        self._head(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK, end - first, suffix, headers)
        if body:
            with io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as source:
                source.seek(first)
                _copy(source, self.wfile, end - first)

    def _encoded(self, found: Path | bytes) -> tuple[Path | bytes, dict[str, str]]:
        """The brotli twin that set-up made of a file, for a client that takes it and wants all, and its headers."""
        if isinstance(found, bytes) or found.suffix not in precompress.SUFFIXES:
            return found, {}
        twin = found.with_name(f"{found.name}.br")
        if not twin.is_file():
            return found, {}
        accepted = {coding.partition(";")[0].strip() for coding in self.headers.get("Accept-Encoding", "").split(",")}
        if "br" not in accepted or "Range" in self.headers:
            return found, {"Vary": "Accept-Encoding"}
        return twin, {"Vary": "Accept-Encoding", "Content-Encoding": "br"}

    def _send(self, status, content: bytes, body=True, suffix=".txt", headers=None) -> None:
        self._head(status, len(content), suffix, headers or {})
        if body:
            self.wfile.write(content)

    def _head(self, status, length: int, suffix: str, headers: dict[str, str]) -> None:
        self.on_reply(self._url().path, int(status), length)
        self.send_response(status)
        kind = content_type(suffix)
        self.send_header("Content-Type", kind.partition(";")[0] if self.foreign else kind)
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.send_header("Content-Length", str(length))
        for name, value in (HEADERS | ({} if self.foreign else ISOLATION) | headers).items():
            self.send_header(name, value)
        self.end_headers()


def content_type(suffix: str) -> str:
    """MIME type of a file name's suffix."""
    return TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")


def _identity(found: Path | bytes) -> tuple[str, int]:
    """ETag and size of a body."""
    if isinstance(found, bytes):
        return f'"{hashlib.sha256(found).hexdigest()[:20]}"', len(found)
    status = found.stat()
    return f'"{status.st_mtime_ns:x}-{status.st_size:x}"', status.st_size


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and end of a single byte range; (0, 0) where it can't be met, None where none is asked."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", (header or "").strip())
    if not match or match[0] == "bytes=-":
        return None
    if not match[1]:
        first, end = max(0, size - int(match[2])), size
    else:
        first, end = int(match[1]), min(int(match[2] or size) + 1, size)
    return (first, end) if first < end else (0, 0)


def _copy(source, target, left: int) -> None:
    while left > 0 and (chunk := source.read(min(left, 1 << 20))):
        target.write(chunk)
        left -= len(chunk)
