"""The snapshot of a live DOM, taken as the command line takes it: by evaluating the function's source."""

import http.server
import threading
from functools import partial

import pytest

from pyweb.page import extract
from pyweb.resources import text

PAGE = """<!DOCTYPE html>
<html lang="en-GB"><head>
<title>Boats &amp; tides</title>
<meta name="csrf-token" content="meta-secret"><meta property="og:type" content="website">
<style>.away { display: none } .unseen { visibility: hidden } .box { display: block }</style>
<script type="application/ld+json">{"@type": ["QAPage"], "text": "json-text"}</script>
</head><body class="home">
<h1>Boats</h1>
<p id="first" onclick="alert()" style="color: red">Low <b>water</b> &lt; noon</p>
<p class="away">style-hidden</p><p hidden>attribute-hidden</p>
<p class="unseen">visibility-hidden <span style="visibility: visible">seen again</span></p>
<p><span class="box">upper</span><span class="box">lower</span></p>
<input value="typed-name"><input type="password" value="pass-word"><textarea>typed-draft</textarea>
<select><option>chosen-option</option></select>
<script>window.touched = 0</script><noscript>no-script</noscript><template>in-template</template>
<svg><text>in-svg</text></svg>
<x-card><span>slotted text</span></x-card>
<iframe srcdoc="<p>framed text</p><p hidden>framed-hidden</p>"></iframe>
<iframe class="away" srcdoc="<p>hidden-frame</p>"></iframe>
<div data-pyweb>own-panel</div>
<pre>one
  two</pre>
<script>
  const root = document.querySelector("x-card").attachShadow({ mode: "open" });
  root.innerHTML = "<style>:host { display: block }</style><p>shadow text</p><slot>fall-back</slot>";
</script>
</body></html>"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, pages: dict[str, str], *args):
        self.pages = pages
        super().__init__(*args)

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.pages.get(self.path, "").encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def take(browser):
    """Opens HTML under an origin of its own and returns its snapshot; further HTML by path."""
    servers = []

    def serve(pages: dict[str, str]) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, pages))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    def snapshot(html: str, before: str = "", **pages: str) -> dict:
        origin = serve({"/": html, **{f"/{name}": page for name, page in pages.items()}})
        browser.get(origin + "/")
        source = text("js_bridge", "snapshot.js").replace("export function", "function", 1)
        return browser.execute_script(f"{before}\n{source}\nreturn snapshot(document);")

    snapshot.serve = serve
    yield snapshot
    for server in servers:
        server.shutdown()
        server.server_close()


def test_rendered_text_is_kept(take):
    html = take(PAGE)["html"]
    wanted = [
        "Low <b>water</b> &lt; noon",
        "seen again",
        "shadow text",
        "slotted text",
        "framed text",
        "one\n  two",
    ]
    assert [string for string in wanted if string not in html] == []


def test_what_is_not_rendered_or_typed_is_left_out(take):
    html = take(PAGE)["html"]
    unwanted = (
        "style-hidden attribute-hidden visibility-hidden typed- pass-word chosen-option touched no-script "
        "in-template in-svg fall-back framed-hidden hidden-frame own-panel <script <style onclick color: "
        "meta-secret json-text"
    ).split()
    assert [string for string in unwanted if string in html] == []


def test_fields_of_the_snapshot(take):
    shot = take(PAGE)
    assert set(shot) == {"html", "url", "title", "language", "selection"}
    assert (shot["title"], shot["language"], shot["selection"]) == ("Boats & tides", "en-GB", "")
    assert shot["url"].startswith("http://127.0.0.1:")


def test_extraction_reads_it(take):
    shot = take(PAGE)
    page = extract(shot["html"], shot["url"])
    assert page.language == "en-GB"
    assert "schema:type" in shot["html"]
    assert "QAPage" in shot["html"]
    blocks = [(block.kind, block.text) for block in page.blocks]
    assert ("heading", "Boats") in blocks
    assert ("code", "one\n  two") in blocks
    assert ("paragraph", "upper lower") in blocks
    assert ("paragraph", "shadow text") in blocks


def test_page_is_not_changed(take, browser):
    take(PAGE)
    script = "return document.documentElement.outerHTML"
    before = browser.execute_script(script)
    source = text("js_bridge", "snapshot.js").replace("export function", "function", 1)
    browser.execute_script(f"{source}\nsnapshot(document)")
    assert browser.execute_script(script) == before


def test_selection_is_returned_but_not_that_of_a_field(take):
    select = "getSelection().selectAllChildren(document.getElementById('first'));"
    assert take(PAGE, before=select)["selection"] == "Low water < noon"
    field = "document.querySelector('textarea').focus(); document.querySelector('textarea').select();"
    assert take(PAGE, before=field)["selection"] == ""


def test_frame_of_another_origin_is_left_out(take):
    other = take.serve({"/": "<p>foreign text</p>"})
    html = take(
        f"<p>own</p><iframe src='{other}/'></iframe><iframe src='/near'></iframe>", near="<p>near text</p>"
    )["html"]
    assert "own" in html
    assert "near text" in html
    assert "foreign text" not in html


def test_size_is_bounded(take):
    grow = "document.body.innerHTML = ('<p>' + 'word '.repeat(2000) + '</p>').repeat(600) + 'z'.repeat(1e7);"
    html = take("<body></body>", before=grow)["html"]
    assert 3_900_000 < len(html) < 4_100_000
    assert html.endswith("</html>")
