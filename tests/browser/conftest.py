"""One Chromium on the software adapter and one local server for all browser tests."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver

from pyweb.cli import browser as browsers
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer
from tests.browser.model_server import CONTENT, ModelServer, Visitor


@pytest.fixture(scope="session")
def site(embedded_model: Path):
    """Base URL of the whole site, the embedded model included."""
    layout = Layout({embedded_model.name: embedded_model})
    with LocalServer(layout.resolve, port=0) as server:
        yield server.url


@contextmanager
def open_browser(profile: Path):
    """A Selenium Chrome with WebGPU on SwiftShader."""
    options = webdriver.ChromeOptions()
    options.binary_location = browsers.find_browser()
    for flag in [*browsers.flags("software", checks=True), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver_path = shutil.which("chromedriver")
    service = webdriver.ChromeService(executable_path=driver_path) if driver_path else None
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(300)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One browser with an empty profile for all tests."""
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def other_browser(tmp_path):
    """A browser for a test that breaks it."""
    with open_browser(tmp_path / "profile") as driver:
        yield driver


@pytest.fixture
def server():
    """A server of `model.gguf` that fails on request."""
    with ModelServer(CONTENT) as server:
        yield server


@pytest.fixture
def visit(browser, server):
    """A visitor of an origin that keeps nothing yet."""
    return Visitor(browser, server)


CALL = """
const [base, body, args, done] = arguments;
const work = new (Object.getPrototypeOf(async () => {}).constructor)('base', 'args', body);
work(base, args).then(done, (error) => done({ error: error.name, message: error.message, remedy: error.remedy }));
"""


@pytest.fixture(scope="module")
def call(browser, site):
    """Runs the body of an async function in a page of the site, where `window.assistant` is closed in the end."""
    browser.get(site + "run.html")
    yield lambda body, **args: browser.execute_async_script(CALL, site, body, args)
    browser.execute_script("window.assistant?.close()")
