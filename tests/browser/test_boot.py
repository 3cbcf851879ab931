"""The runtime starts in a real browser's worker."""

BOOT = """
const [base, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const stages = [];
  const assistant = new Assistant(base + 'js_bridge/worker.js', (p) => stages.push(p.note));
  const start = performance.now();
  await assistant.request('boot', { runtime: base + 'runtime/' });
  const seconds = (performance.now() - start) / 1000;
  assistant.close();
  return { stages, seconds };
})().then(done, (error) => done({ error: error.name, message: error.message }));
"""

MISSING_RUNTIME = """
const [base, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  const assistant = new Assistant(base + 'js_bridge/worker.js');
  await assistant.request('boot', { runtime: base + 'nowhere/' });
})().catch((error) => done({ error: error.name, message: error.message, remedy: error.remedy }));
"""

UNKNOWN_MODEL = """
const [base, done] = arguments;
import(base + 'js_bridge/client.js')
  .then(({ Assistant }) => Assistant.load({ model: 'no-such-model' }))
  .catch((error) => done({ error: error.name, remedy: error.remedy }));
"""


def run(browser, site: str, script: str) -> dict:
    browser.get(site + "run.html")
    return browser.execute_async_script(script, site)


def test_worker_boots_pyodide_with_the_wheel(browser, site):
    result = run(browser, site, BOOT)
    assert "error" not in result, result
    assert result["stages"][-1].startswith("Python 3.14")


def test_missing_runtime_is_a_network_error(browser, site):
    result = run(browser, site, MISSING_RUNTIME)
    assert result["error"] == "NetworkError"
    assert result["remedy"]


def test_unknown_model_is_named_on_the_page(browser, site):
    result = run(browser, site, UNKNOWN_MODEL)
    assert result["error"] == "UnknownModelError"
    assert "GGUF" in result["remedy"]
