"""The assistant panel on the demo article, with the worker replaced by stub_load.js."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.panel_page import Panel

SELECT = "getSelection().selectAllChildren(document.querySelector(arguments[0]))"
USED = "button, textarea, summary, dialog, progress, [tabindex='0']"


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
    panel.finish("What did he do?")
    assert panel.text(".answer") == "Every evening the keeper <b>lit</b> the lamp &amp; wrote."
    assert not panel.root.find_elements(By.CSS_SELECTOR, ".answer *")
    assert panel.text(".note") == "4 tokens · 41.3 tokens/s · stub adapter"
    panel.finish("attack")
    assert panel.text(".answer") == (
        '<img src=x onerror="window.attacked = true"><script>window.attacked = true</script>'
    )
    assert panel.browser.execute_script("return window.attacked ?? null") is None


def test_a_follow_up_goes_to_the_same_conversation(panel):
    panel.open()
    for question in ("<i>One</i>", "Two"):
        panel.finish(question)
    assert panel.calls()["load"] == [{"model": "smollm2-135m-instruct", "context": None}]
    assert [chat["title"] for chat in panel.calls()["chat"]] == ["The Keeper of Brannoch Point"]
    assert [(call["question"], call["turn"]) for call in panel.calls()["ask"]] == [("<i>One</i>", 1), ("Two", 2)]
    assert "272 of 310 prompt tokens reused" in panel.text(".note")
    assert panel.count(".answer") == 2


def test_what_it_read_and_its_notes_are_told_once(panel):
    panel.open()
    panel.finish("One")
    panel.finish("Two")
    assert panel.count("details") == panel.count(".notice") == 1
    assert panel.text("summary") == "What it read from the page"
    assert not panel.part(".material").is_displayed()
    panel.part("summary").send_keys(Keys.ENTER)
    assert panel.part(".material").is_displayed()
    assert panel.text(".material") == "# The Keeper of Brannoch Point\n\n<b>Ailsa</b> Munro"


def test_a_new_conversation_forgets_and_clears(panel):
    panel.open()
    assert not panel.part(".anew").is_displayed()
    panel.finish("One")
    panel.part(".anew").send_keys(Keys.ENTER)
    assert panel.focused() == "question"
    assert panel.count(".turn") == 0
    assert panel.part(".intro").is_displayed()
    panel.finish("Two")
    assert [call["turn"] for call in panel.calls()["ask"]] == [1, 1]
    assert panel.calls()["ended"] == 1
    assert len(panel.calls()["load"]) == 1
    assert panel.count(".divider") == 0


def test_another_page_begins_another_conversation(panel):
    panel.open()
    panel.finish("One")
    panel.browser.execute_script("location.hash = 'storm'")
    panel.finish("Two")
    panel.browser.execute_script("history.pushState(null, '', 'other.html'); document.title = 'Other'")
    panel.finish("Three")
    assert [call["turn"] for call in panel.calls()["ask"]] == [1, 2, 1]
    assert [chat["title"] for chat in panel.calls()["chat"]] == ["The Keeper of Brannoch Point", "Other"]
    assert panel.text(".divider") == "A new conversation begins here."


def test_a_selection_is_offered_and_goes_with_one_question(panel):
    panel.browser.execute_script(SELECT, "h1")
    panel.open()
    assert panel.text(".chip span") == "Selected: “The Keeper of Brannoch Point”"
    panel.finish("What is this?")
    assert not panel.part(".chip").is_displayed()
    assert panel.text(".quoted") == "“The Keeper of Brannoch Point”"
    panel.finish("And that?")
    assert [call["selection"] for call in panel.calls()["ask"]] == ["The Keeper of Brannoch Point", ""]
    assert panel.calls()["chat"][0]["selection"] == "", "the page itself doesn't carry it a second time"


def test_a_selection_outlives_the_mouse_in_the_panel(panel):
    heading = panel.browser.find_element(By.TAG_NAME, "h1")
    ActionChains(panel.browser).move_to_element(heading).double_click().perform()
    word = panel.browser.execute_script("return String(getSelection()).trim()")
    for part in (".launcher", "h2", "#question"):
        ActionChains(panel.browser).click(panel.part(part)).perform()
        assert panel.text(".chip span") == f"Selected: “{word}”"


def test_a_selection_can_change_and_be_left_out(panel):
    panel.open()
    panel.browser.execute_script("document.activeElement.blur()")
    panel.browser.execute_script(SELECT, "h2")
    panel.until(lambda: panel.text(".chip span") == "Selected: “The storm of 1937”")
    panel.part(".drop").send_keys(Keys.ENTER)
    assert panel.focused() == "question"
    assert not panel.part(".chip").is_displayed()
    panel.finish("What is this?")
    assert panel.calls()["ask"][0]["selection"] == ""


def test_shift_and_enter_begin_a_line_and_the_field_grows(panel):
    panel.open()
    before = panel.part("#question").rect["height"]
    panel.press("One", Keys.SHIFT + Keys.ENTER + Keys.NULL, "two")
    assert panel.part("#question").get_property("value") == "One\ntwo"
    assert panel.part("#question").rect["height"] > before
    panel.press(Keys.ENTER)
    panel.until(lambda: panel.text(".note"))
    assert panel.calls()["ask"][0]["question"] == "One\ntwo"


def test_progress_names_the_stage_megabytes_and_time_left(browser, site):
    panel = Panel(browser, site, model="slow")
    panel.open()
    panel.ask("Anything")
    panel.until(lambda: panel.text("[role=status]") == "Loading the model")
    assert panel.text(".figures") == "45.1 of 98.4 MB (45%), about 42 s left"
    assert panel.part("progress").get_property("position") == pytest.approx(45.1 / 98.4)
    panel.part(".stop").click()
    panel.until(panel.idle)
    assert panel.text(".note") == "Stopped"
    assert panel.text("[role=alert]") == ""


def test_an_answer_joins_the_log_when_it_is_whole(panel):
    """So that a screen reader hears it once, and not word by word."""
    panel.open()
    panel.ask("forever")
    panel.until(lambda: panel.text(".answer").startswith("la la"))
    assert panel.part(".log").get_attribute("role") == "log"
    assert panel.text(".log") == ""
    assert panel.text("[role=status]") == "Answering"
    panel.press(Keys.ESCAPE)
    panel.until(panel.idle)
    assert panel.part("dialog").is_displayed(), "the first Escape only stops the answer"
    assert "la la" in panel.text(".log")
    assert panel.text("[role=status]") == ""


def test_everything_that_is_used_has_a_name(panel):
    panel.open()
    panel.finish("One")
    for part in panel.root.find_elements(By.CSS_SELECTOR, USED):
        if part.is_displayed():
            assert part.accessible_name, part.get_attribute("outerHTML")


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
    panel.finish("One")
    panel.finish("lost")
    assert panel.text("[role=alert] .name") == "DeviceLostError"
    panel.part("#question").clear()
    panel.finish("Again")
    assert len(panel.calls()["load"]) == 2
    assert panel.calls()["closed"] == 1
    assert panel.calls()["ask"][-1]["turn"] == 1
    assert panel.count(".divider") == 1, "the model doesn't know what was said before"


def test_trying_again_takes_the_place_of_what_failed(panel):
    panel.browser.execute_script(SELECT, "h1")
    panel.open()
    panel.finish("offline")
    assert panel.text(".note") == "Not answered"
    panel.part(".retry").send_keys(Keys.ENTER)
    assert panel.focused() == "question"
    panel.until(lambda: panel.text(".note").startswith("4 tokens"))
    assert panel.count(".turn") == 1
    assert panel.count(".divider") == 0
    assert panel.text("[role=alert]") == ""
    assert panel.part("#question").get_property("value") == ""
    assert [call["selection"] for call in panel.calls()["ask"]] == ["The Keeper of Brannoch Point"] * 2


def test_a_model_that_does_not_load_is_an_error(browser, site):
    panel = Panel(browser, site, model="broken")
    panel.open()
    panel.ask("Anything")
    panel.until(lambda: panel.text("[role=alert] .name") == "ModelFileError")
    assert panel.text("[role=alert] strong") == "The file is no <i>GGUF</i> file."
    assert panel.count(".retry") == 0, "the same again would fail again"


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


@pytest.mark.parametrize(
    ("scheme", "theme", "dark"),
    [
        *(("normal", None, False), ("light", None, False), ("light dark", None, True)),
        *(("normal", "system", True), ("light dark", "light", False)),
    ],
)
def test_the_panel_is_dark_only_where_the_page_can_be(browser, site, scheme, theme, dark):
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        panel = Panel(browser, site, scheme=scheme, **({"theme": theme} if theme else {}))
        panel.open()
        ground = panel.part("dialog").value_of_css_property("background-color")
        assert ground == ("rgba(16, 22, 28, 1)" if dark else "rgba(251, 252, 253, 1)")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


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
