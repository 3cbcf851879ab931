"""What the benchmark's command makes of options, pages, peers and Grids; no browser starts."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pyweb import errors
from pyweb.cli import bench, bench_grid, bench_page, bench_peers, peers
from pyweb.cli.console import Progress
from pyweb.cli.layout import Layout
from pyweb.cli.main import _parser, main
from pyweb.cli.server import LocalServer


def options(*arguments):
    return _parser().parse_args(["bench", *arguments])


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--grid", "http://x", "--peers", "wllama"], "UsageError: A Grid runs neither peers"),
        (["--host", "127.0.0.1"], "UsageError: --host is"),
        (["--peers", "wllama", "--smoke"], "UsageError: Peers are compared"),
        (
            ["--peers", "llama.cpp", "--shape", "tiny"],
            "UsageError: There is no peer 'llama.cpp'. The peers are wllama,",
        ),
        (["--peers", ",", "--shape", "tiny"], "UsageError: No peer is named"),
        (["--peers", "transformers", "--shape", "tiny"], "UsageError: transformers.js needs an ONNX model."),
        (["--peers", "webllm", "--shape", "tiny"], "UsageError: WebLLM needs a model library"),
        (["--onnx", "x"], "UsageError: A model for a peer needs the peer."),
        (["--shape", "gpt-5"], "UsageError: There is no shape 'gpt-5'. The shapes are qwen2.5-0.5b,"),
        (["--shape", "tiny", "--model", "x"], "UsageError: Argument --model: not allowed with argument --shape."),
        (["--model", "nobody"], "UnknownModelError: "),
        (["--shape", "tiny", "--prompts", "none.jsonl"], "UsageError: The prompts none.jsonl can't be read: No such"),
        (
            ["--shape", "tiny", "--grid", "http://127.0.0.1:1"],
            "NetworkError: The Grid http://127.0.0.1:1 doesn't answer",
        ),
        (["--shape", "tiny", "--grid", "nowhere"], "UsageError: nowhere is no Grid's address"),
    ],
)
def test_a_failure_is_one_line(arguments, said, capsys):
    assert main(["bench", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1][: len(said)]) == ("", said)


@pytest.mark.parametrize("content", ["", "not JSON", '{"page": "x"}', "[1]"])
def test_prompts_must_be_prompts(tmp_path, content):
    (tmp_path / "p.jsonl").write_text(content)
    with pytest.raises(errors.UsageError, match="prompts"):
        bench.prompts_of(str(tmp_path / "p.jsonl"))


def test_the_address_has_what_was_asked_for(tmp_path):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"instruction": "Say it."}\n')
    given = options("--smoke", "--runs", "3", "--parts", "modes", "--visits", "--prompts", str(prompts))
    subject = bench_page.Subject("tiny", random=True)
    url = bench_page.address("http://x/", "bench.html", bench.bench_query(given, subject))
    assert url == (
        "http://x/bench.html?shape=tiny&parts=modes&runs=3&tokens=8&widths=1,2&modes=loop,fixed:8&lengths=16"
        "&role_widths=1&host_modes=loop&steps=2&batch=1&visits=1&prompts=prompts.jsonl&auto=1"
    )
    assert bench.prompts_of(str(prompts)) == {"prompts.jsonl": prompts}


def test_models_in_the_address(tmp_path, embedded_model):
    own = tmp_path / "my model.gguf"
    own.write_bytes(b"GGUF")
    assert bench_page.subject_of(str(own), None, Progress()).query() == {"model": "models/my%20model.gguf"}
    known = bench_page.subject_of("SmolLM2-135M-Instruct", None, Progress())
    assert known.query() == {"model": "smollm2-135m-instruct"}
    assert known.models == {embedded_model.name: embedded_model}
    assert bench_page.subject_of("https://a.example/b.gguf", None, Progress()).query() == {
        "model": "https://a.example/b.gguf"
    }


class Page:
    """Answers each look with the next state; an exception is raised, the last state stays."""

    def __init__(self, *states):
        self.states = list(states)

    def __call__(self, expression):
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return state


@pytest.fixture
def result_of(monkeypatch):
    monkeypatch.setattr(bench_page, "_INTERVAL", 0.001)
    return lambda *states, seconds=5: bench_page.result_of(Page(*states), "x", Progress(), seconds)


def test_a_page_that_loads_anew_is_waited_for(result_of):
    gone = errors.BrowserError("Gone.")
    assert result_of(None, {"progress": "modes"}, gone, gone, {"result": {"tables": []}}) == {"tables": []}


def test_a_page_that_stays_away_is_an_error(result_of):
    with pytest.raises(errors.BrowserError, match="Gone"):
        result_of(errors.BrowserError("Gone."))


def test_a_page_without_end_is_an_error(result_of):
    with pytest.raises(errors.BrowserError, match="no result within 0.01 s"):
        result_of({"progress": "for ever"}, seconds=0.01)


@pytest.mark.parametrize("name, kind", [("LimitError", errors.LimitError), ("TypeError", errors.PywebError)])
def test_the_errors_of_a_page(result_of, name, kind):
    with pytest.raises(kind, match="Too much. Take less.") as caught:
        result_of({"result": {"error": {"name": name, "message": "Too much.", "remedy": "Take less."}}})
    assert caught.value.name == name


def test_lists_of_features_are_joined():
    plain = ["--headless", "--enable-dawn-features=a,b", "--use-angle=vulkan"]
    assert bench_peers.joined([*plain, *bench_peers.DEVELOPER]) == [
        "--headless",
        "--use-angle=vulkan",
        "--enable-dawn-features=a,b,vulkan_enable_f16_on_nvidia",
        "--disable-dawn-features=tiered_adapter_limits,timestamp_quantization",
    ]


def test_a_comparison_keeps_what_failed():
    samples = {"median": 2.0, "min": 1.0, "max": 4.0, "samples": [1.0, 2.0, 4.0]}
    good = {"name": "wllama", "set": "developer", "version": "3", "backend": "cpu", "adapter": {"f16": False}}
    good |= {"promptTokens": 838, "tokens": 128, "firstToken": samples, "decode": samples, "notes": ["0 of 3 layers."]}
    table = bench_peers.comparison([good, {"name": "webllm", "set": "developer", "error": "X"}])
    assert [len(row) for row in table["rows"]] == [len(table["columns"])] * 2
    assert table["rows"][0][3:] == ["cpu", "no", "838", "128", "2.00 (1.00–4.00)", "2.00 (1.00–4.00)"]
    assert table["rows"][1][3] == "failed"
    assert table["note"].endswith("wllama (developer): 0 of 3 layers.")


def test_the_site_carries_what_a_peer_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "packages", lambda named, progress: {"packages": tmp_path})
    for name in ("config.json", "onnx/model_q4.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    subject = bench_page.Subject("tiny", random=True)
    found = bench_peers.carried(["wllama", "transformers"], subject, str(tmp_path), Progress())
    layout = Layout(extra=found)
    about = json.loads(layout.resolve("peers.json"))
    assert set(about["engines"]) == {"pyweb", "wllama", "transformers"}
    assert (about["shapes"], about["onnx"]["dtypes"]) == (["tiny"], ["q4"])
    assert layout.resolve("shape-tiny.header").startswith(b"GGUF")
    assert layout.resolve("onnx/onnx/model_q4.onnx") == layout.resolve("packages/onnx/model_q4.onnx")
    assert layout.resolve("peers.json/x") is layout.resolve("onnx/../config.json") is None


def test_an_onnx_folder_must_hold_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "packages", lambda named, progress: {})
    with pytest.raises(errors.UsageError, match="no ONNX model"):
        bench_peers.carried(["transformers"], bench_page.Subject("x"), str(tmp_path), Progress())


def grid_status(status):
    """A server that answers /status with it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(status).encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def stereotypes_of(status):
    server = grid_status(status)
    try:
        return bench_grid.stereotypes(f"http://127.0.0.1:{server.server_address[1]}/")
    finally:
        server.shutdown()
        server.server_close()


def test_each_kind_of_browser_counts_once():
    chrome, firefox = {"browserName": "chrome", "platformName": "linux"}, {"browserName": "firefox"}
    tablet = chrome | {"device:name": "tablet"}
    nodes = [
        {"slots": [{"stereotype": kind} for kind in kinds]} for kinds in ([chrome, chrome], [firefox, tablet, chrome])
    ]
    found = stereotypes_of({"value": {"nodes": nodes}})
    assert found == [chrome, firefox, tablet]
    assert [bench_grid._name(kind) for kind in found] == ["chrome linux", "firefox", "chrome linux tablet"]


def test_something_else_is_no_grid():
    with pytest.raises(errors.NetworkError, match="no Selenium Grid 4"):
        stereotypes_of({"value": {"ready": True}})


def test_switches_of_a_node(monkeypatch):
    monkeypatch.setenv("PYWEB_BROWSER_FLAGS", "--one")
    assert bench_grid.switches("auto", False, "http://127.0.0.1:8765/") == ["--one"]
    assert bench_grid.switches("auto", False, "http://192.0.2.7:8765/") == [
        "--one",
        "--unsafely-treat-insecure-origin-as-secure=http://192.0.2.7:8765",
    ]
    assert "--use-webgpu-adapter=swiftshader" in bench_grid.switches("software", True, "http://localhost/")


def test_a_grid_needs_selenium(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "selenium", None)
    assert main(["bench", "--shape", "tiny", "--grid", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("Run `pip install 'pyweb[grid]'`.")


def test_an_address_of_another_machine_cannot_be_bound():
    with pytest.raises(errors.SetupError, match="203.0.113.1 is no address"):
        LocalServer(lambda path: None, port=0, host="203.0.113.1")
