"""The inspector page, with the worker replaced by a recorded run (stub_run.js)."""

from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

STUB = Path(__file__).with_name("stub_run.js").read_text()

ATTACH = """
const [base, model, done] = arguments;
import(base + 'inspector.js').then(({ attachInspector }) => {
  attachInspector({ model, load: window.stubLoad });
  done();
});
"""
BOXES = """
return [...document.querySelectorAll('#tree g.node')].map((g) => {
  const part = (name) => g.querySelector('.' + name)?.textContent ?? '';
  return [part('token'), g.classList[1], part('letter'), part('tick')];
});
"""
ROWS = """
const { rows } = document.getElementById(arguments[0]).tBodies[0];
return [...rows].map(({ cells }) => [...cells].map((cell) => cell.textContent));
"""


class Inspector:
    """A person's view of the page."""

    def __init__(self, browser, site: str, model: str = "stub"):
        self.browser = browser
        browser.get(site + "inspector.html")
        browser.execute_script(STUB)
        browser.execute_async_script(ATTACH, site, model)

    def until(self, condition, seconds: float = 10):
        return WebDriverWait(self.browser, seconds, poll_frequency=0.02).until(lambda _: condition())

    def part(self, name: str):
        return self.browser.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return self.part(name).get_property("textContent")

    def press(self, *keys: str) -> None:
        self.browser.switch_to.active_element.send_keys(*keys)

    def choose(self, name: str, value: str) -> None:
        Select(self.part(name)).select_by_value(value)

    def run(self, question: str = "What was lit?") -> None:
        self.part("question").clear()
        self.part("question").send_keys(question, Keys.ENTER)

    def finish(self) -> None:
        self.run()
        self.until(lambda: self.text("status").startswith("Done"))

    def boxes(self) -> list[list[str]]:
        """Token, state, letter and tick of each node."""
        return self.browser.execute_script(BOXES)

    def rows(self, table: str) -> list[list[str]]:
        return self.browser.execute_script(ROWS, table)

    def calls(self) -> dict:
        return self.browser.execute_script("return window.stubCalls")


@pytest.fixture
def inspector(browser, site):
    return Inspector(browser, site)


def test_nothing_is_loaded_before_the_first_run(inspector):
    assert inspector.calls()["load"] == []
    assert not inspector.part("results").is_displayed()


def test_accepted_nodes_are_lit_and_those_beyond_the_width_dimmed(inspector):
    inspector.finish()
    inspector.part("step").send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    assert inspector.text("position") == "Step 2 of 4"
    assert inspector.boxes() == [
        ["·<b>", "last", "", ""],
        ["⏎", "accepted", "P", "✓"],
        ["·a", "rejected", "G", ""],
        ["·was", "accepted", "P", "✓"],
        ["·ship", "waiting", "G", ""],
        ["·the", "waiting", "G", ""],
        ["·old", "waiting", "G", ""],
    ], "the tree that the first step reported, of which the second checked four nodes"
    assert inspector.text("facts") == (
        "Step 2. The last 3 tokens had occurred before. "
        "4 nodes were checked; the step gave 2 guesses accepted and one of the model’s own."
    )
    marks = [mark.get_property("textContent") for mark in inspector.part("reply").find_elements(By.TAG_NAME, "mark")]
    assert marks == ["\n", " was", " the"]
    assert inspector.text("reply") == " the lamp <b>\n was the", "text, never markup"
    assert inspector.rows("nodes")[3] == ["3", "·was", "1", "page or question", "accepted"]


def test_the_first_tree_is_known_only_where_it_was_accepted(inspector):
    inspector.finish()
    inspector.part("step").send_keys(Keys.HOME)
    assert [box[:2] for box in inspector.boxes()] == [
        ["end·of·the·pr…", "last"],
        ["·the", "accepted"],
        ["·lamp", "accepted"],
    ]
    assert inspector.text("facts").endswith("The first tree is drawn as far as it was accepted.")


def test_a_width_without_the_right_guess_accepts_nothing(inspector):
    inspector.finish()
    inspector.part("step").send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert [box[1] for box in inspector.boxes()] == ["last", "rejected", "waiting", "waiting", "waiting"]
    assert [box[2] for box in inspector.boxes()][2] == "R", "the reply has it later than the page"


def test_a_stop_token_is_the_models_own(inspector):
    inspector.finish()
    assert inspector.text("position") == "Step 4 of 4", "the last step is followed"
    assert [box[1] for box in inspector.boxes()] == ["last", "accepted", "rejected"]
    assert inspector.text("facts").endswith("1 guess accepted and the reply’s end.")


def test_totals_table_and_costs(inspector):
    inspector.finish()
    assert [inspector.text(name) for name in ("tokens", "steps", "rate", "pace")] == ["8", "4", "2.00", "20.0"]
    numbers = "8 tokens in 4 steps, 2.00 tokens per step, 20.0 ms per token"
    assert inspector.text("status") == f"Done: {numbers}, on stub adapter."
    assert inspector.rows("table") == [
        ["1", "8", "1", "–", "2", "·the·lamp·<b>"],
        ["2", "4", "3", "–", "2", "⏎·was·the"],
        ["3", "2", "3", "2.00", "0", "·lamp"],
        ["4", "8", "3", "1.00", "1", "·<b>"],
    ]
    assert inspector.rows("costs")[3] == ["8", "12.00", "1.20"]
    assert inspector.text("origins").endswith(": page or question 3, frequent token 1, reply 1.")
    charts = inspector.browser.find_elements(By.CSS_SELECTOR, ".chart[role=img]:has(canvas)")
    assert ["5 guesses accepted" in chart.get_attribute("aria-label") for chart in charts] == [False, True, False]
    assert "8 nodes 12.0 ms" in charts[2].get_attribute("aria-label")


def test_arrows_buttons_and_charts_go_back(inspector):
    inspector.finish()
    inspector.part("previous").click()
    assert inspector.text("position") == "Step 3 of 4"
    inspector.press(Keys.ARROW_LEFT)
    assert inspector.text("position") == "Step 2 of 4"
    inspector.press(Keys.ARROW_RIGHT)
    assert inspector.text("position") == "Step 3 of 4"
    over = inspector.browser.find_element(By.CSS_SELECTOR, "#width-chart .u-over")
    left = -over.size["width"] // 2 + over.size["width"] // 20  # ten steps fit: the first is half a step from the left
    ActionChains(inspector.browser).scroll_to_element(over).move_to_element_with_offset(over, left, 0).click().perform()
    assert inspector.text("position") == "Step 1 of 4"
    inspector.part("question").click()
    inspector.press(Keys.ARROW_RIGHT)
    assert inspector.text("position") == "Step 1 of 4", "a field keeps its arrows"


def test_stop_ends_a_run_and_an_earlier_step_stays_in_view(inspector):
    inspector.choose("mode", "loop")
    inspector.run("forever")
    inspector.until(lambda: int(inspector.text("steps")) > 5)
    assert {box[2] for box in inspector.boxes()} <= {"", "R", "?"}, "the prompt isn't known yet"
    inspector.part("step").send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    steps = int(inspector.text("steps"))
    inspector.until(lambda: int(inspector.text("steps")) > steps + 2)
    assert inspector.text("position").startswith("Step 2 of ")
    inspector.part("stop").click()
    inspector.until(lambda: inspector.text("status").startswith("Stopped: "))
    assert inspector.part("run").is_displayed()
    assert inspector.calls()["measured"] == 0, "only adaptive needs costs"
    inspector.part("measure").click()
    inspector.until(lambda: inspector.rows("costs"))


def test_the_form_says_what_is_asked_and_memory_is_a_source(inspector):
    inspector.choose("material", "article")
    assert not inspector.part("text").is_displayed()
    inspector.choose("memory", "conversation")
    inspector.choose("mode", "fixed:8")
    inspector.finish()
    assert inspector.calls()["load"] == [{"model": "stub", "memory": "conversation"}]
    ask = {"question": "What was lit?", "title": "The Keeper of Brannoch Point", "mode": "fixed:8", "maxTokens": 96}
    assert inspector.calls()["ask"] == [ask | {"text": None}]
    inspector.run()
    inspector.until(lambda: len(inspector.calls()["ask"]) == 2 and "earlier replies 1" in inspector.text("origins"))
    assert len(inspector.calls()["load"]) == 1
    inspector.choose("memory", "off")
    inspector.choose("material", "text")
    inspector.run()
    inspector.until(lambda: len(inspector.calls()["ask"]) == 3 and inspector.text("status").startswith("Done"))
    assert inspector.calls()["closed"] == 1, "another scope needs another assistant"
    assert inspector.calls()["ask"][2]["text"].startswith("Monday: the ferry")
    assert "earlier" not in inspector.text("origins")


def test_an_error_shows_sentence_remedy_and_name(browser, site):
    inspector = Inspector(browser, site, "broken")
    inspector.run()
    inspector.until(lambda: inspector.text("alert"))
    assert inspector.text("alert") == "No <i>GGUF</i> file. Try another. (ModelFileError)"
    assert inspector.part("run").is_displayed()


def test_a_phone_does_not_scroll_sideways(browser, site):
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        inspector = Inspector(browser, site)
        inspector.finish()
        browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
        sizes = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, innerWidth]"
        assert browser.execute_script(sizes) == [360, 360, 360]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_pages_own_policy_blocks_nothing(inspector):
    inspector.browser.get_log("browser")
    inspector.browser.refresh()
    assert [entry for entry in inspector.browser.get_log("browser") if entry["level"] == "SEVERE"] == []
