"""The assistant panel on the demo article, with the worker replaced by stub_load.js."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

STUB = Path(__file__).with_name("stub_load.js").read_text()

ATTACH = """
const [base, options, done] = arguments;
document.querySelector('[data-pyweb]').remove();
import(base + 'panel.js').then(({ attachPanel }) => {
  attachPanel({ ...options, load: options.load === null ? undefined : window.stubLoad });
  done();
});
"""


class Panel:
    """A person's view of the panel."""

    def __init__(self, browser, site: str, **options):
        self.browser = browser
        browser.get(site + "demo/article.html")
        self.until(lambda: browser.find_elements(By.CSS_SELECTOR, "[data-pyweb]"))
        browser.execute_script(STUB)
        browser.execute_async_script(ATTACH, site, options)
        self.root = browser.find_element(By.CSS_SELECTOR, "[data-pyweb]").shadow_root
        self.until(lambda: self.part(".launcher").is_displayed())

    def until(self, condition, seconds: float = 10):
        return WebDriverWait(self.browser, seconds, poll_frequency=0.02).until(lambda _: condition())

    def part(self, selector: str):
        return self.root.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """Text of the last element that matches; empty where none does."""
        found = self.root.find_elements(By.CSS_SELECTOR, selector)
        return found[-1].get_property("textContent") if found else ""

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus, as a person would."""
        self.browser.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        """Class or id of the focused element inside the panel."""
        script = "const e = arguments[0].getRootNode().activeElement; return e && (e.className || e.id);"
        return self.browser.execute_script(script, self.part("dialog"))

    def open(self) -> None:
        self.part(".launcher").send_keys(Keys.ENTER)
        self.until(lambda: self.part("dialog").is_displayed())

    def ask(self, question: str) -> None:
        self.part("#question").send_keys(question, Keys.ENTER)

    def idle(self) -> bool:
        return self.part(".ask").is_displayed()

    def calls(self) -> dict:
        return self.browser.execute_script("return window.stubCalls")


@pytest.fixture
def panel(browser, site):
    return Panel(browser, site)


def test_the_script_tag_alone_adds_the_panel(browser, site):
    browser.get(site + "demo/article.html")
    WebDriverWait(browser, 10).until(lambda _: browser.find_elements(By.CSS_SELECTOR, "[data-pyweb]"))
    root = browser.find_element(By.CSS_SELECTOR, "[data-pyweb]").shadow_root
    assert root.find_element(By.CSS_SELECTOR, ".launcher").get_property("textContent") == "Ask this page"


def test_keyboard_opens_asks_closes_and_gets_its_focus_back(panel):
    panel.open()
    assert panel.focused() == "question"
    assert panel.calls()["load"] == [], "opening downloads nothing"
    panel.press("What did he do?", Keys.ENTER)
    panel.until(lambda: panel.text(".note"))
    assert panel.focused() == "question"
    panel.press(Keys.ESCAPE)
    assert not panel.part("dialog").is_displayed()
    assert panel.focused() == "launcher"


def test_an_answer_is_text_and_never_markup(panel):
    panel.open()
    panel.ask("What did he do?")
    panel.until(lambda: panel.text(".note"))
    assert panel.text(".answer") == "Every evening the keeper <b>lit</b> the lamp &amp; wrote."
    assert not panel.root.find_elements(By.CSS_SELECTOR, ".answer *")
    assert panel.text(".note") == "4 tokens · 41.3 tokens/s · stub adapter"
    assert panel.part(".log").get_attribute("role") == "log"


def test_a_second_question_uses_the_loaded_model(panel):
    panel.open()
    for question in ("<i>One</i>", "Two"):
        panel.ask(question)
        panel.until(panel.idle)
    assert panel.calls()["load"] == [{"model": "smollm2-135m-instruct", "context": None}]
    assert panel.calls()["ask"] == ["<i>One</i>", "Two"]
    assert len(panel.root.find_elements(By.CSS_SELECTOR, ".answer")) == 2


def test_progress_names_the_stage_and_counts_megabytes(browser, site):
    panel = Panel(browser, site, model="slow")
    panel.open()
    panel.ask("Anything")
    panel.until(lambda: panel.text("[role=status]") == "Loading the model")
    assert panel.text(".figures") == "45.1 of 98.4 MB (45%)"
    assert panel.part("progress").get_property("position") == pytest.approx(45.1 / 98.4)
    panel.part(".stop").click()
    panel.until(panel.idle)
    assert panel.text(".note") == "Stopped"
    assert panel.text("[role=alert]") == ""


def test_stop_ends_an_answer_and_keeps_the_focus_in_the_panel(panel):
    panel.open()
    panel.part("#question").send_keys("forever")
    panel.part(".ask").send_keys(Keys.SPACE)
    panel.until(lambda: panel.text(".answer").startswith("la la"))
    assert panel.focused() == "stop"
    panel.press(Keys.SPACE)
    panel.until(panel.idle)
    assert panel.text(".note").startswith("Stopped · ")
    assert panel.focused() == "ask"


def test_an_error_shows_sentence_remedy_and_name(panel):
    panel.open()
    panel.ask("too long")
    panel.until(lambda: panel.text("[role=alert]"))
    assert panel.text("[role=alert] strong") == "The prompt has 5000 tokens, the context holds 4096."
    assert "Ask a shorter question." in panel.text("[role=alert]")
    assert panel.text("[role=alert] .name") == "PromptTooLongError"
    assert panel.part("#question").get_property("value") == "too long", "so that it can be changed"
    panel.part("#question").clear()
    panel.ask("Shorter")
    panel.until(panel.idle)
    assert panel.text("[role=alert]") == ""
    assert len(panel.calls()["load"]) == 1


def test_after_a_lost_device_the_model_is_loaded_again(panel):
    panel.open()
    panel.ask("lost")
    panel.until(lambda: panel.text("[role=alert] .name") == "DeviceLostError")
    panel.part("#question").clear()
    panel.ask("Again")
    panel.until(panel.idle)
    assert len(panel.calls()["load"]) == 2
    assert panel.calls()["closed"] == 1


def test_a_model_that_does_not_load_is_an_error(browser, site):
    panel = Panel(browser, site, model="broken")
    panel.open()
    panel.ask("Anything")
    panel.until(lambda: panel.text("[role=alert] .name") == "ModelFileError")


def test_a_site_without_the_model_says_so(browser, site):
    panel = Panel(browser, site, model="no-such-model", load=None)
    panel.open()
    panel.ask("Anything")
    panel.until(lambda: panel.text("[role=alert] .name") == "UnknownModelError")
    assert "Give the URL of a GGUF file." in panel.text("[role=alert]")


def test_keys_typed_in_the_panel_do_not_reach_the_page(panel):
    panel.browser.execute_script("window.seen = []; addEventListener('keydown', (e) => seen.push(e.key));")
    panel.open()
    panel.press("s/?")
    assert panel.browser.execute_script("return seen") == ["Enter"], "only the key that opened the panel"


@pytest.mark.parametrize("page", ["index.html", "demo/article.html"])
def test_a_phone_does_not_scroll_sideways(browser, site, page):
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        if page == "index.html":
            browser.get(site + page)
        else:
            panel = Panel(browser, site)
            panel.open()
            panel.ask("x" * 200)
            panel.until(panel.idle)
            assert panel.part("dialog").rect["width"] == 360
        sizes = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, innerWidth]"
        assert browser.execute_script(sizes) == [360, 360, 360]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
