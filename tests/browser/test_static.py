"""The site as a folder, on a plain web server, below a path, without any special header."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pyweb.cli.layout import Layout

READY = """
const [base, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const assistant = new Assistant(base + 'js_bridge/worker.js');
  await assistant.request('boot', { runtime: base + 'runtime/' });
  assistant.close();
  const models = await (await fetch(base + 'models/index.json')).json();
  return { models, isolated: crossOriginIsolated };
})().then(done, (error) => done({ error: error.name, message: error.message }));
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def static_site(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    Layout({"tiny.gguf": tmp_path / "tiny.gguf"}).write(tmp_path / "root" / "below" / "here")
    handler = functools.partial(QuietHandler, directory=tmp_path / "root")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/below/here/"
        server.shutdown()


def test_boots_from_a_static_folder(browser, static_site):
    browser.get(static_site + "run.html")
    result = browser.execute_async_script(READY, static_site)
    assert "error" not in result, result
    assert [model["url"] for model in result["models"]] == ["tiny.gguf"]
    assert result["isolated"] is False
