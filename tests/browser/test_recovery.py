"""A GPU process that ends: idle, in a reply, while loading. The assistant goes on by itself."""

from pathlib import Path

import pytest

from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer

TINY = Path(__file__).resolve().parents[1] / "fixtures" / "tiny_chat.gguf"

LOAD = """
const [base, done] = arguments;
(async () => {
  const { Assistant } = await import(base + 'js_bridge/client.js');
  window.assistant = await Assistant.load({ model: base + 'models/tiny_chat.gguf' });
  window.chat = assistant.chat({ text: 'The lamp of Skerry Point.' });
  window.first = await chat.ask('What?', { maxTokens: 12, mode: 'loop' });
  return first.reply_ids;
})().then(done, (error) => done(`${error.name}: ${error.message}`));
"""

ASK = """
const [question, tokens, done] = arguments;
window.text = '';
window.stages = [];
const onText = (piece) => (window.text += piece);
const onProgress = ({ stage }) => window.stages.push(stage);
window.asked = chat.ask(question, { maxTokens: tokens, mode: 'loop', onText, onProgress });
window.asked.catch(() => {});
done();
"""

FIRST_WORDS = """
const done = arguments[0];
const timer = setInterval(() => text && done(clearInterval(timer)), 20);
"""

ANSWER = """
const done = arguments[0];
window.asked.then(
  ({ reply_ids: ids, answer, reused }) => done({ ids, same: answer === text, stages: [...new Set(stages)], reused }),
  (error) => done({ error: error.name, message: error.message }),
);
"""


@pytest.fixture
def crashing(other_browser):
    """A browser with a conversation of one turn, and what ends its GPU process."""
    with LocalServer(Layout({TINY.name: TINY}).resolve, port=0) as server:
        other_browser.get(server.url + "run.html")
        ids = other_browser.execute_async_script(LOAD, server.url)
        assert isinstance(ids, list), ids
        yield other_browser, lambda: other_browser.execute_cdp_cmd("Browser.crashGpuProcess", {})


def test_the_conversation_goes_on_after_the_gpu_was_lost(crashing):
    browser, crash = crashing
    crash()
    browser.execute_async_script(ASK, "And then?", 6)
    answer = browser.execute_async_script(ANSWER)
    assert "error" not in answer, answer
    assert answer["ids"] and answer["same"] and "model" in answer["stages"] and answer["reused"] == 0
    browser.execute_async_script(ASK, "And last?", 6)
    again = browser.execute_async_script(ANSWER)
    assert again["reused"] > 0 and "model" not in again["stages"]


def test_a_reply_goes_on_where_it_was(crashing):
    browser, crash = crashing
    browser.execute_async_script(ASK, "Tell me all of it.", 900)
    browser.execute_async_script(FIRST_WORDS)
    crash()
    answer = browser.execute_async_script(ANSWER)
    assert "error" not in answer, answer
    assert answer["same"] and "model" in answer["stages"]
