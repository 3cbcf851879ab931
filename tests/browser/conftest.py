"""One Chromium on the software adapter and one local server for all browser tests."""

import shutil
from pathlib import Path

import pytest
from selenium import webdriver

from pyweb.cli import browser as browsers
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer


@pytest.fixture(scope="session")
def site(embedded_model: Path):
    """Base URL of the whole site, the embedded model included."""
    layout = Layout({embedded_model.name: embedded_model})
    with LocalServer(layout.resolve, port=0) as server:
        yield server.url


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A Selenium Chrome with WebGPU on SwiftShader and an empty profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = browsers.find_browser()
    profile = tmp_path_factory.mktemp("profile")
    for flag in [*browsers.flags("software", checks=True), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver_path = shutil.which("chromedriver")
    service = webdriver.ChromeService(executable_path=driver_path) if driver_path else None
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(300)
    yield driver
    driver.quit()
