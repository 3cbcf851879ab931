"""A person's view of the assistant panel on the demo article."""

from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

STUB = Path(__file__).with_name("stub_load.js").read_text()

ATTACH = """
const [base, { scheme, ...options }, done] = arguments;
if (scheme) document.documentElement.style.colorScheme = scheme;
document.querySelector('[data-pyweb]').remove();
import(base + 'panel.js').then(({ attachPanel }) => {
  attachPanel({ ...options, load: options.load === null ? undefined : window.stubLoad });
  done();
});
"""


class Panel:
    """The panel with a stub in the worker's place, unless the option `load` is None, on a page of a colour scheme."""

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

    def finish(self, question: str) -> None:
        """Asks, and waits for the answer's end."""
        turns = self.count(".log > .turn")
        self.ask(question)
        self.until(lambda: self.count(".log > .turn") > turns and self.idle())

    def count(self, selector: str) -> int:
        return len(self.root.find_elements(By.CSS_SELECTOR, selector))

    def idle(self) -> bool:
        return self.part(".ask").is_displayed()

    def calls(self) -> dict:
        return self.browser.execute_script("return window.stubCalls")
