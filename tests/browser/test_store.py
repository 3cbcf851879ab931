"""`store.js` in a real browser: text by key, kept between visits."""

import pytest

ASK = """
const [base, calls, done] = arguments;
(async () => {
  const store = await import(base + 'js_bridge/store.js');
  const answers = [];
  for (const [method, ...args] of calls) {
    const value = await store[method](...args);
    answers.push(method === 'get' ? value ?? null : null);
  }
  return { answers };
})().then(done, (error) => done({ error: `${error.name}: ${error.message}` }));
"""

TOGETHER = """
const [base, count, done] = arguments;
(async () => {
  const store = await import(base + 'js_bridge/store.js');
  const keys = Array.from({ length: count }, (_, i) => `test\\n${i}`);
  await Promise.all(keys.map((key, i) => store.put(key, `${i}`)));
  return { answers: await Promise.all(keys.map((key) => store.get(key))) };
})().then(done, (error) => done({ error: `${error.name}: ${error.message}` }));
"""

WORKER = """
const [base, key, done] = arguments;
const source = `import('${base}js_bridge/store.js').then((store) => store.get('${key}')).then(postMessage)`;
const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
worker.onmessage = ({ data }) => { worker.terminate(); done(data ?? null); };
"""


def answers(browser, site, script, value):
    result = browser.execute_async_script(script, site, value)
    assert "error" not in result, result
    return result["answers"]


@pytest.fixture
def ask(browser, site):
    """Calls of the store, one after the other: ask(["put", key, text], ["get", key]) -> answers."""
    browser.get(site + "run.html")
    yield lambda *calls: answers(browser, site, ASK, [list(call) for call in calls])
    answers(browser, site, ASK, [["remove", "test"]])


def test_what_was_put_is_there(ask):
    assert ask(["get", "test"], ["put", "test", "one"], ["get", "test"]) == [None, None, "one"]
    assert ask(["put", "test", "two"], ["get", "test"]) == [None, "two"]
    assert ask(["put", "test", ""], ["get", "test"]) == [None, ""]


def test_text_is_kept_as_it_is(ask):
    text = "AAAA\n\0 Größe 🙂 \ud7ff" * 20_000
    assert ask(["put", "test\n🙂\n49152", text], ["get", "test\n🙂\n49152"])[1] == text


def test_it_survives_a_reload_and_is_there_for_a_worker(ask, browser, site):
    ask(["put", "test reload", "kept"])
    browser.refresh()
    assert ask(["get", "test reload"]) == ["kept"]
    browser.get(site + "index.html")
    assert browser.execute_async_script(WORKER, site, "test reload") == "kept"


def test_remove_takes_all_keys_of_a_prefix_and_no_others(ask):
    gone = ["test\n", "test\na", "test\na\n1", "test\nz\n🙂", "test\n\ud7ff"]
    stay = ["test", "test ", "tes", "tesu\na", "test2\na", "costs\ntest\n"]
    ask(*(["put", key, key] for key in (*gone, *stay)), ["remove", "test\n"])
    assert ask(*(["get", key] for key in gone)) == [None] * len(gone)
    assert ask(*(["get", key] for key in stay)) == stay
    ask(["remove", "tes"], ["remove", "costs\ntest"], ["remove", "nothing has this prefix"])
    assert ask(*(["get", key] for key in stay)) == [None] * len(stay)


def test_many_at_once(ask, browser, site):
    assert answers(browser, site, TOGETHER, 40) == [str(i) for i in range(40)]
