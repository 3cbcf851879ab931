"""The parts of the peers' page that need no engine: statistics, prompts, where an engine's layers are, its form."""

import pytest

CALL = """
const [base, file, name, values, done] = arguments;
import(`${base}peers/${file}.js`).then((module) => done({ value: module[name](...values) }),
  (error) => done({ error: error.message }));
"""


@pytest.fixture
def call(browser, site):
    browser.get(f"{site}run.html")

    def run(file, name, *values):
        found = browser.execute_async_script(CALL, site, file, name, values)
        assert "error" not in found, found
        return found["value"]

    return run


@pytest.mark.parametrize("samples, median", [([3, 1, 2], 2), ([4, 1, 2, 3], 2.5), ([7], 7)])
def test_medians(call, samples, median):
    found = call("measure", "summary", samples)
    assert found == {"median": median, "min": min(samples), "max": max(samples), "samples": samples}


def test_prompts_share_no_beginning(call):
    first, second = (call("measure", "prompt", 300, salt) for salt in (1, 2))
    assert len(first) == len(second) == 300
    assert first[:11] != second[:11]


LAYER = "load_tensors: layer {:3d} assigned to device {}, is_swa = 0"


@pytest.mark.parametrize(
    "devices, backend",
    [(["WebGPU"] * 3, "webgpu"), (["CPU"] * 3, "cpu"), (["CPU", "WebGPU", "WebGPU"], "mixed"), ([], "cpu")],
)
def test_where_the_layers_of_wllama_are(call, devices, backend):
    log = ["build: 1", *(LAYER.format(number, device) for number, device in enumerate(devices))]
    assert call("wllama", "placement", log)["backend"] == backend


def test_pace_leaves_out_the_first_window_and_the_cut_one(call):
    windows = [[1, 4, 9.0], [1, 4, 0.4], [8, 4, 0.6], [1, 2, 5.0]]
    records = [[1, 0, 1]] * 8 + [[3, 0, 8]] * 4 + [[1, 0, 1]] * 2
    assert call("pyweb", "pace", {"windows": windows, "records": records}) == pytest.approx(1000 * 1.0 / 16)
    assert call("pyweb", "pace", {"windows": windows[:1], "records": records[:4]}) is None


RESULT = """
const [done] = arguments;
const look = () => (globalThis.benchmark?.result ? done(globalThis.benchmark.result) : setTimeout(look, 50));
look();
"""


@pytest.mark.parametrize(
    "query, said",
    [
        ("engine=wllama&model=models/none.gguf", "packages/wllama/index.js"),
        ("engine=../chat&shape=tiny", "There is no engine ../chat."),
        ("engine=transformers&shape=tiny", "transformers can't take this model."),
    ],
)
def test_what_the_site_lacks_is_an_error(browser, site, query, said):
    browser.get(f"{site}peers.html?{query}&auto=1")
    result = browser.execute_async_script(RESULT)
    assert said in result["error"]["message"]
    assert said in browser.find_element("id", "alert").text


def test_the_form_says_what_the_site_lacks(browser, site):
    browser.get(f"{site}peers.html?shape=tiny&prompt=64")
    browser.execute_async_script("const done = arguments[0]; setTimeout(done, 500)")
    found = browser.execute_script(
        "const value = (id) => document.getElementById(id).value;"
        "return { engine: value('engine'), model: value('model'), prompt: value('prompt'),"
        " hint: !document.getElementById('about').hidden };"
    )
    assert found == {"engine": "pyweb", "model": "shape=tiny", "prompt": "64", "hint": True}
