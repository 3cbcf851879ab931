"""The chat page: with the worker replaced by stub_load.js, and once with a real model picked as a file."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

STUB = Path(__file__).with_name("stub_load.js").read_text()
TINY = Path(__file__).resolve().parent.parent / "fixtures" / "tiny_chat.gguf"

ATTACH = """
const [base, model, done] = arguments;
import(base + 'chat.js').then(({ attachChat }) => attachChat({ model, load: window.stubLoad })).then(done);
"""


class ChatPage:
    """A person's view of the page."""

    def __init__(self, browser, site: str, model: str | None = None, stub: bool = True):
        self.browser = browser
        browser.get(site + "chat.html")
        self.until(lambda: self.count("#model option") == 3)
        if stub:
            browser.execute_script(STUB)
            browser.execute_async_script(ATTACH, site, model)

    def until(self, condition, seconds: float = 10):
        return WebDriverWait(self.browser, seconds, poll_frequency=0.02).until(lambda _: condition())

    def part(self, selector: str):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector: str) -> int:
        return len(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        """Text of the last element that matches; empty where none does."""
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return found[-1].get_property("textContent") if found else ""

    def press(self, *keys: str) -> None:
        self.browser.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        return self.browser.execute_script("return document.activeElement.id || document.activeElement.className")

    def load(self, seconds: float = 10) -> None:
        self.part("#load").send_keys(Keys.ENTER)
        self.until(lambda: self.count("#question"), seconds)

    def idle(self) -> bool:
        return self.part(".ask").is_displayed()

    def finish(self, question: str, seconds: float = 10) -> None:
        """Asks, and waits for the answer's end."""
        turns = self.count(".log > .turn")
        self.part("#question").send_keys(question, Keys.ENTER)
        self.until(lambda: self.count(".log > .turn") > turns and self.idle(), seconds)

    def calls(self) -> dict:
        return self.browser.execute_script("return window.stubCalls")


@pytest.fixture
def page(browser, site):
    return ChatPage(browser, site)


@pytest.fixture
def phone(browser):
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_sites_model_is_loaded_when_asked_for(page):
    assert page.calls()["load"] == []
    assert page.text("#about").startswith("98.4 MB · ")
    page.load()
    (call,) = page.calls()["load"]
    assert call["model"]["name"] == "smollm2-135m-instruct"
    assert call["model"]["url"].endswith("/models/smollm2-135m-instruct.gguf")
    assert call["context"] is None
    assert call["memory"] == "off"
    assert page.text("#name") == "smollm2-135m-instruct"
    facts = [fact.text for fact in page.browser.find_elements(By.CSS_SELECTOR, "#facts li")]
    assert facts == [
        "4,096 tokens of context",
        "104.0 MB of weights and 94.4 MB of keys and values on the GPU",
        "stub adapter",
        "The model file brings no chat template, so a plain one is used.",
    ]
    assert page.focused() == "question"
    assert not page.part("#choice").is_displayed()


def test_questions_follow_one_another(page):
    page.load()
    page.finish("One")
    page.finish("Two")
    assert [(call["question"], call["turn"]) for call in page.calls()["ask"]] == [("One", 1), ("Two", 2)]
    assert page.calls()["chat"] == [{"title": None, "selection": None, "system": None}], "about no page"
    assert page.count(".notice") == page.count("details.read") == 0, "the note stands among the facts"
    page.part(".anew").send_keys(Keys.ENTER)
    assert page.count(".turn") == 0
    page.finish("Three")
    assert page.calls()["ask"][-1]["turn"] == 1


def test_an_answer_is_text_and_never_markup(page):
    page.load()
    page.finish("attack")
    answer = '<img src=x onerror="window.attacked = true"><script>window.attacked = true</script>'
    assert page.text(".answer") == answer
    assert page.count(".answer *") == 0
    assert page.browser.execute_script("return window.attacked ?? null") is None


def test_escape_stops_an_answer(page):
    page.load()
    page.part("#question").send_keys("forever", Keys.ENTER)
    page.until(lambda: page.text(".answer").startswith("la la"))
    page.press(Keys.ESCAPE)
    page.until(page.idle)
    assert page.text(".note").startswith("Stopped · ")
    assert page.focused() == "question"


def test_a_long_answer_is_followed_unless_the_reader_goes_up(phone, page):
    left = "const e = document.scrollingElement; return e.scrollHeight - e.scrollTop - e.clientHeight"
    page.load()
    page.part("#question").send_keys("forever", Keys.ENTER)
    page.until(lambda: len(page.text(".answer")) > 900)
    assert page.browser.execute_script(left) < 40
    page.browser.execute_script("document.scrollingElement.scrollTop = 0")
    length = len(page.text(".answer"))
    page.until(lambda: len(page.text(".answer")) > length + 20)
    assert page.browser.execute_script("return document.scrollingElement.scrollTop") == 0
    page.press(Keys.ESCAPE)
    page.until(page.idle)


def test_settings_go_with_the_questions(page):
    page.part("#settings summary").click()
    Select(page.part("#memory")).select_by_value("origin")
    page.part("#context").send_keys("2048")
    page.part("#system").send_keys("Be brief.")
    page.load()
    assert not page.part("#system").is_displayed(), "the settings make room for the conversation"
    page.part("#settings summary").click()
    assert not page.part("#memory").is_enabled()
    assert page.calls()["load"][0]["context"] == 2048
    assert page.calls()["load"][0]["memory"] == "origin"
    page.finish("One")
    assert page.calls()["ask"][0]["maxTokens"] == 512
    assert page.calls()["ask"][0]["sampling"] is None, "the likeliest token"
    for name, value in (("temperature", "0.7"), ("seed", "5"), ("length", "99999")):
        page.part(f"#{name}").clear()
        page.part(f"#{name}").send_keys(value)
    page.finish("Two")
    assert page.calls()["ask"][1]["sampling"] == {"temperature": 0.7, "seed": 5}
    assert page.calls()["ask"][1]["maxTokens"] == 32768
    page.part("#system").send_keys(" Rhyme.")
    page.finish("Three")
    assert [chat["system"] for chat in page.calls()["chat"]] == ["Be brief.", "Be brief. Rhyme."]
    assert page.calls()["ask"][2]["turn"] == 1
    assert page.text(".divider") == "A new conversation begins here."


def test_memory_can_be_forgotten_where_there_is_one(page):
    page.load()
    assert not page.part("#forget").is_displayed()
    page.part("#other").send_keys(Keys.ENTER)
    assert page.focused() == "model"
    assert page.calls()["closed"] == 1
    assert page.count("#question") == 0
    page.part("#settings summary").click()
    Select(page.part("#memory")).select_by_value("conversation")
    page.load()
    page.part("#forget").send_keys(Keys.ENTER)
    page.until(lambda: page.text("#forgotten") == "Forgotten.")
    assert page.calls()["forgotten"] == 1


def test_a_load_shows_how_far_it_is_and_can_be_cancelled(browser, site):
    page = ChatPage(browser, site, "https://example.org/slow.gguf")
    assert page.text("#about").startswith("The server must allow this site (CORS)")
    page.part("#load").send_keys(Keys.ENTER)
    page.until(lambda: page.text("#state .figures") == "45.1 of 98.4 MB (45%), about 42 s left")
    assert page.text("#state [role=status]") == "Loading the model"
    assert page.focused() == "cancel"
    assert not page.part("#url").is_enabled()
    page.press(Keys.ENTER)
    page.until(lambda: page.part("#load").is_displayed())
    assert page.focused() == "load"
    assert page.text("#state [role=alert]") == ""
    assert page.part("#url").is_enabled()


@pytest.mark.parametrize(("model", "error"), [("broken", "ModelFileError"), ("no-gpu", "NoWebGPUError")])
def test_a_failed_load_says_what_helps(browser, site, model, error):
    page = ChatPage(browser, site, f"https://example.org/{model}.gguf")
    page.part("#load").send_keys(Keys.ENTER)
    page.until(lambda: page.text("[role=alert] .name") == error)
    assert page.part("[role=alert] strong").text
    assert page.count("#alert i") == 0
    assert page.part("#load").is_displayed()


def test_a_phone_does_not_scroll_sideways(phone, page):
    sizes = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, innerWidth]"
    page.part("#settings summary").click()
    assert page.browser.execute_script(sizes) == [360, 360, 360]
    page.load()
    page.finish("x" * 200)
    assert page.browser.execute_script(sizes) == [360, 360, 360]


def test_everything_that_is_used_has_a_name(page):
    page.part("#settings summary").click()
    for step in (lambda: None, page.load, lambda: page.finish("One")):
        step()
        for part in page.browser.find_elements(By.CSS_SELECTOR, "button, input, select, textarea, summary, section"):
            if part.is_displayed():
                assert part.accessible_name, part.get_attribute("outerHTML")


def test_a_picked_file_is_loaded_and_talked_with(browser, site):
    page = ChatPage(browser, site, stub=False)
    Select(page.part("#model")).select_by_value("file")
    page.part("#file").send_keys(str(TINY))
    assert page.text("#about") == f"{TINY.stat().st_size / 1e6:.1f} MB"
    page.part("#settings summary").click()
    page.part("#length").clear()
    page.part("#length").send_keys("24")
    page.load(120)
    assert page.text("#name") == "tiny_chat.gguf"
    page.finish("What did the keeper do?", 60)
    assert page.text(".answer")
    assert "24 tokens · " in page.text(".note")
    page.finish("And then?", 60)
    assert "prompt tokens reused" in page.text(".note")
    page.part("#settings summary").click()
    page.part("#length").clear()
    page.part("#length").send_keys("3000")
    page.part("#question").send_keys("Go on.", Keys.ENTER)
    page.until(lambda: page.text("#talk [role=status]") == "Answering", 60)
    page.press(Keys.ESCAPE)
    page.until(page.idle, 60)
    assert page.text(".note").startswith("Stopped · ")
