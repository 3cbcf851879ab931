"""What a person sees when something is wrong: the same name in Python and JavaScript, a sentence and a remedy."""

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


def test_matrix_over_the_device_limit(browser, site):
    error = load(browser, site, "smollm2-135m-instruct", SMALL_LIMITS)
    assert error["name"] == "LimitError"
    assert "1048576" in error["message"]


# The device goes with the tenth write, each time that one is opened.
LOST = """
const { writeBuffer } = GPUQueue.prototype;
const { requestDevice } = GPUAdapter.prototype;
let device, writes;
GPUAdapter.prototype.requestDevice = async function (wanted) {
  writes = 0;
  return (device = await requestDevice.call(this, wanted));
};
GPUQueue.prototype.writeBuffer = function (...args) {
  if (++writes === 10) device.destroy();
  return writeBuffer.apply(this, args);
};
"""
FULL = """
const { createBuffer, popErrorScope } = GPUDevice.prototype;
let bytes = 0;
GPUDevice.prototype.createBuffer = function (wanted) {
  bytes += wanted.size;
  return createBuffer.call(this, wanted);
};
GPUDevice.prototype.popErrorScope = async function () {
  const error = await popErrorScope.call(this);
  return bytes > 30e6 ? new GPUOutOfMemoryError('full') : error;
};
"""


@pytest.mark.parametrize("prelude, name", [(LOST, "DeviceLostError"), (FULL, "GPUOutOfMemoryError")])
def test_a_gpu_that_goes_or_fills_up_while_loading(browser, site, prelude, name):
    assert load(browser, site, "smollm2-135m-instruct", prelude)["name"] == name


LOADED = """
const [base, name, prelude, picked, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const url = `${base}models/${name}`;
  const script = `const waiting = []; self.onmessage = (event) => waiting.push(event);\\n${prelude}
    await import('${base}js_bridge/worker.js');
    for (const event of waiting) self.onmessage(event);`;
  const worker = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const model = picked ? new File([await (await fetch(url)).blob()], 'picked.gguf') : { name: 'a model', url };
  const seen = [];
  const onProgress = (report) => report.stage === 'model' && seen.push(report);
  const assistant = await Assistant.load({ model, worker, runtime: base + 'runtime/', context: 64, onProgress });
  assistant.close();
  return { ...assistant.loaded, last: seen.at(-1) };
})().then(done, (error) => done({ error: error.name, message: error.message }));
"""

QUOTA = """
FileSystemSyncAccessHandle.prototype.write = () => { throw new DOMException('full', 'QuotaExceededError'); };
"""


@pytest.mark.parametrize("picked", [False, True], ids=["full disk", "picked file"])
def test_a_model_that_is_not_kept_runs(browser, site, embedded_model, picked):
    browser.get(site + "run.html")
    prelude = "" if picked else QUOTA
    loaded = browser.execute_async_script(LOADED, site, embedded_model.name, prelude, picked)
    assert "error" not in loaded, loaded
    assert loaded["not_kept"] == ("" if picked else "QuotaExceededError")
    assert loaded["fetched"] == loaded["last"]["total"] == loaded["last"]["done"] == embedded_model.stat().st_size
    assert loaded["last"]["left"] == 0


STOP = """
const [base, model, stage, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const assistant = new Assistant(base + 'js_bridge/worker.js');
  await assistant.request('boot', { runtime: base + 'runtime/' });
  const controller = new AbortController();
  let stopped = 0;
  const onProgress = (report) => {
    if (stopped || report.stage !== stage || (stage === 'model' && report.done < 4e7)) return;
    stopped = performance.now();
    controller.abort();
  };
  const params = { model: { name: 'stopped', url: base + model, keep: false }, context: 64 };
  const error = await assistant.request('load', params, { signal: controller.signal, onProgress }).catch((e) => e);
  const ms = performance.now() - stopped;
  const again = await assistant.request('load', params);
  assistant.close();
  return { name: error.name, ms, again: again.context };
})().then(done, (error) => done({ error: error.name, message: error.message }));
"""


@pytest.mark.parametrize("stage", ["model", "kernels"])
def test_a_load_that_is_stopped_and_the_next_one(browser, site, embedded_model, stage):
    browser.get(site + "run.html")
    result = browser.execute_async_script(STOP, site, f"models/{embedded_model.name}", stage)
    assert "error" not in result, result
    assert result["name"] == "StoppedError"
    assert result["ms"] < 1000
    assert result["again"] == 64
