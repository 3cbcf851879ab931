"""A web server that fails on request, and a visitor who reads a model file from it with the bridge's modules."""

import hashlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pyweb import resources

__all__ = ["CONTENT", "HASH", "HELPERS", "PART", "SIZE", "ModelServer", "Visitor", "file_content", "sha256"]

PART = 16 * 1024 * 1024
SIZE = 2 * PART + 12_345

HELPERS = """
const weights = await import(base + 'js_bridge/weights.js');
const parts = await import(base + 'js_bridge/parts.js');
const url = base + 'model.gguf';
const quick = { waits: [10, 10, 10], stall: 1500 };
const kept = async () => (await (await navigator.storage.getDirectory()).getDirectoryHandle('models'))
  .getDirectoryHandle('m');
const open = (model = {}, options = {}) => weights.openSource({ url, name: 'm', ...model }, { ...quick, ...options });
const readAll = async (source) => {
  const bytes = new Uint8Array(source.size);
  for (let index = 0; index < source.parts; index++) bytes.set(await source.part(index), index * parts.PART);
  return { hash: await parts.sha256(bytes), fetched: source.fetched, notKept: source.notKept };
};
const visit = async (model, options) => {
  const source = await open(model, options);
  try {
    return await readAll(source);
  } finally {
    source.close();
  }
};
"""

RUN = """
const [base, where, helpers, body, args, done] = arguments;
const code = `async (base, args) => {\\n${helpers}\\n${body}\\n}`;
const show = `({ error: error.name, message: error.message })`;
if (where === 'window') {
  (0, eval)(`(${code})`)(base, args).then(done, (error) => done((0, eval)(`(error) => (${show})`)(error)));
} else {
  const script = `self.onmessage = ({ data: [base, args] }) => (${code})(base, args)`
    + `.then((result) => postMessage(result)).catch((error) => postMessage(${show}));`;
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
  worker.onmessage = ({ data }) => { worker.terminate(); done(data); };
  const input = document.querySelector('input')?.files[0];
  worker.postMessage([base, { ...args, file: input }]);
}
"""

PAGE = "<!doctype html><title>Model files</title><input type=file>"


def file_content(seed: int = 1, size: int = SIZE) -> bytes:
    """Bytes of a file of some parts, the last one short."""
    block = hashlib.shake_256(bytes([seed])).digest(1 << 16)
    stamped = (i.to_bytes(4, "big") + block[4:] for i in range(-(-size // len(block))))
    return b"".join(stamped)[:size]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONTENT = file_content()
HASH = sha256(CONTENT)


class ModelServer:
    """Serves the bridge and `model.gguf`.

    What goes wrong is set from outside: `offline` (connections end without an answer), `ranges` (else 200 and the
    whole file), `statuses` (answers of the next requests), `cuts` (bytes after which the next answers break off),
    `pace` (seconds between two chunks), `headers` (replaced in every answer; None leaves one out), `versions` (content
    and ETag that the next requests find).
    """

    def __init__(self, content: bytes):
        self.content, self.etag = content, '"one"'
        self.offline, self.ranges, self.pace = False, True, 0.0
        self.statuses: list[int] = []
        self.cuts: list[int] = []
        self.versions: list[tuple[bytes, str]] = []
        self.headers: dict[str, str | None] = {}
        self.asked: list[str] = []
        self.sent = 0
        handler = type("Bound", (_Handler,), {"files": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"

    def __enter__(self) -> "ModelServer":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception) -> None:
        self._http.shutdown()
        self._http.server_close()

    def forget(self) -> None:
        """Counts anew what is asked for and sent."""
        self.asked, self.sent = [], 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: ModelServer

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._model(body=False)

    def do_GET(self):
        if ".gguf" in self.path:
            return self._model()
        name = self.path.removeprefix("/js_bridge/")
        script = self.path.startswith("/js_bridge/")
        body = resources.text("js_bridge", name).encode() if script else PAGE.encode()
        self._head(200, {"Content-Type": "text/javascript" if script else "text/html"}, len(body))
        self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(length)} | headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()

    def _model(self, body: bool = True) -> None:
        files = self.files
        asked = self.headers.get("Range", "")
        files.asked.append(asked.removeprefix("bytes=") or self.command)
        if files.versions:
            files.content, files.etag = files.versions.pop(0)
        if files.offline:
            self.close_connection = True
            return
        status = files.statuses.pop(0) if files.statuses else 0
        if status:
            return self._head(status, {}, 0)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked) if files.ranges else None
        first, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(files.content))
        piece = files.content[first:end]
        headers = {"ETag": files.etag}
        if found:
            headers["Content-Range"] = f"bytes {first}-{first + len(piece) - 1}/{len(files.content)}"
        self._head(206 if found else 200, headers | files.headers, len(piece))
        if body:
            self._send(piece)

    def _send(self, piece: bytes) -> None:
        files = self.files
        cut = files.cuts.pop(0) if files.cuts and len(piece) > 1 else len(piece)
        for at in range(0, cut, 1 << 18):
            chunk = piece[at : min(at + (1 << 18), cut)]
            self.wfile.write(chunk)
            files.sent += len(chunk)
            time.sleep(files.pace)
        if cut < len(piece) or "Content-Length" in files.headers:
            self.close_connection = True


class Visitor:
    """Runs the body of an async function in a page of the server or in a worker of it; `HELPERS` are there."""

    def __init__(self, browser, server: ModelServer):
        self.browser, self.server = browser, server
        browser.get(server.url)

    def __call__(self, body: str = "return visit(args.model);", where: str = "worker", **args: object) -> dict:
        """What the body returns; an error as its `error` (name) and `message`."""
        return self.browser.execute_async_script(RUN, self.server.url, where, HELPERS, body, args)
