"""What a person sees when something is wrong: the same name in Python and JavaScript, a sentence and a remedy."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pyweb import errors
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer

LOAD = """
const [base, model, prelude, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const source = `${prelude}\\nawait import('${base}js_bridge/worker.js');\\n`
    + `for (const event of waiting) self.onmessage(event);`;
  const held = `const waiting = []; self.onmessage = (event) => waiting.push(event);\\n${source}`;
  const worker = URL.createObjectURL(new Blob([held], { type: 'text/javascript' }));
  await Assistant.load({ model, worker, runtime: base + 'runtime/' });
})().then(() => done(null), (error) => done({ name: error.name, message: error.message, remedy: error.remedy }));
"""

NO_WEBGPU = "Object.defineProperty(navigator, 'gpu', { value: undefined });"
NO_ADAPTER = "navigator.gpu.requestAdapter = async () => null;"
SMALL_LIMITS = """
Object.defineProperty(GPUSupportedLimits.prototype, 'maxStorageBufferBindingSize', { get: () => 1 << 20 });
"""


def load(browser, base: str, model: object, prelude: str = "") -> dict:
    """The error that loading ends with, in a worker whose world `prelude` changed first."""
    browser.get(base + "run.html")
    error = browser.execute_async_script(LOAD, base, model, prelude)
    assert error, "loading should fail"
    known = getattr(errors, error["name"])
    assert issubclass(known, errors.PywebError)
    assert error["message"].endswith(".") and error["remedy"]
    return error


@pytest.mark.parametrize("prelude, name", [(NO_WEBGPU, "NoWebGPUError"), (NO_ADAPTER, "NoAdapterError")])
def test_missing_webgpu_and_missing_adapter(browser, site, prelude, name):
    assert load(browser, site, "smollm2-135m-instruct", prelude)["name"] == name


@pytest.fixture
def served(tmp_path, embedded_model):
    """Serves damaged copies of the embedded model's beginning."""
    head = embedded_model.open("rb").read(3_000_000)
    files = {
        "cut.gguf": head,
        "noise.gguf": bytes(range(256)) * 4000,
        "flipped.gguf": head[:100] + bytes(b ^ 0x5A for b in head[100:4000]) + head[4000:],
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with LocalServer(Layout({name: tmp_path / name for name in files}).resolve, port=0) as server:
        yield server.url


@pytest.mark.parametrize("name", ["cut", "noise", "flipped"])
def test_damaged_model_file(browser, served, name):
    error = load(browser, served, {"name": name, "url": f"{served}models/{name}.gguf"})
    assert error["name"] == "ModelFileError"


def test_wrong_part_is_not_used(browser, site, embedded_model):
    model = {"name": "wrong-hash", "url": f"{site}models/{embedded_model.name}", "parts": ["0" * 64]}
    assert load(browser, site, model)["name"] == "IntegrityError"


def test_missing_model_file(browser, site):
    error = load(browser, site, {"name": "none", "url": f"{site}models/none.gguf"})
    assert error["name"] == "NetworkError" and "404" in error["message"]


class WholeFiles(SimpleHTTPRequestHandler):
    """A server that ignores byte ranges, for another origin."""

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_OPTIONS(self):
        self.send_response(204)
        self.send_header("Access-Control-Allow-Headers", "range")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_server_without_ranges(browser, site, tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF" * 100)
    handler = functools.partial(WholeFiles, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/m.gguf"
        error = load(browser, site, {"name": "m", "url": url})
        server.shutdown()
    assert error["name"] == "NetworkError" and "ranges" in error["message"]


def test_matrix_over_the_device_limit(browser, site):
    error = load(browser, site, "smollm2-135m-instruct", SMALL_LIMITS)
    assert error["name"] == "LimitError"
    assert "maxStorageBufferBindingSize is 1048576" in error["message"]
