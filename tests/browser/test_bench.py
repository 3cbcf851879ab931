"""The benchmark's page on a tiny model: by its address, with its buttons, over a reload."""

import json
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from pyweb.bench import tables
from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer

TINY = Path(__file__).resolve().parents[1] / "fixtures" / "tiny_chat.gguf"

PROMPTS = [{"id": "lamp", "instruction": "Who lit it?", "page": "The keeper lit the lamp."}]

MEASURED = "all widths, calibration"  # a stage of a visit
SMOKE = {
    "model": TINY.name,
    "parts": "widths,modes,prefill,roles,host",
    "runs": 1,
    "tokens": 6,
    "widths": "1,2",
    "modes": "loop,fixed:2",
    "lengths": "16",
    "role_widths": "1",
    "host_modes": "loop",
    "steps": 2,
    "batch": 1,
    "prompts": "prompts.jsonl",
}


@pytest.fixture(scope="module")
def bench_site(tmp_path_factory):
    """Base URL of a site with the tiny model and a file of prompts."""
    prompts = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    prompts.write_text("\n".join(map(json.dumps, PROMPTS)) + "\n")
    with LocalServer(Layout({TINY.name: TINY}, {prompts.name: prompts}).resolve, port=0) as server:
        yield server.url


class Page:
    """A person's view of the page, and a driver's."""

    def __init__(self, browser, site: str, **query: object):
        self.browser = browser
        browser.get("about:blank")
        browser.get(f"{site}bench.html?{urlencode(query)}")
        self.until("return document.querySelectorAll('#model option').length > 0")

    def until(self, script: str, seconds: float = 120):
        end = time.monotonic() + seconds
        while not (found := self.browser.execute_script(script)):
            assert time.monotonic() < end, f"{script}: {self.text('state')}"
            time.sleep(0.1)
        return found

    def part(self, name: str):
        return self.browser.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return self.part(name).get_property("textContent")

    def shown(self, name: str) -> bool:
        return self.part(name).is_displayed()

    def result(self) -> dict:
        return self.until("return globalThis.benchmark?.result ?? null")


@pytest.fixture(scope="module")
def smoke(browser, bench_site):
    """The page after a run that its address started."""
    page = Page(browser, bench_site, **SMOKE, auto=1)
    page.found = page.result()
    return page


def test_a_run_by_the_address_measures_every_part(smoke):
    result = smoke.found
    assert "error" not in result, result["error"]
    assert [row["width"] for row in result["widths"]["rows"]] == [1, 2]
    assert [row["mode"] for row in result["modes"]["rows"]] == ["loop", "fixed:2"]
    assert [(task["id"], task["different"]) for task in result["modes"]["tasks"]] == [("lamp", [])]
    assert [row["tokens"] for row in result["prefill"]["rows"]] == [16]
    assert result["roles"]["clock"] == "timestamps" and result["roles"]["widths"][0]["rows"]
    row = result["host"]["rows"][0]
    assert row["interval"]["median"] > row["bridge"]["median"] > 0
    assert result["name"] == TINY.name and "Chrome" in result["user_agent"]
    assert "swiftshader" in result["machine"]["adapter"].lower()
    assert result["settings"]["runs"] == 1
    assert result["tables"] == tables(result)


def test_the_page_shows_every_table_and_charts_with_words(smoke):
    titles = [heading.text for heading in smoke.browser.find_elements(By.CSS_SELECTOR, "#tables h3")]
    assert titles == [table["title"] for table in smoke.found["tables"]]
    cells = smoke.browser.execute_script(
        "return [...document.querySelectorAll('#tables tbody tr')].map(r => r.cells.length)"
    )
    assert cells == [len(row) for table in smoke.found["tables"] for row in table["rows"]]
    for name in ("modes", "widths", "prefill"):
        chart = smoke.part(f"{name}-chart")
        assert chart.is_displayed() and " ms" in chart.get_attribute("aria-label")
        assert chart.find_elements(By.TAG_NAME, "canvas")
    assert smoke.shown("start") and not smoke.shown("cancel")


def test_the_result_can_be_copied_and_downloaded(smoke):
    smoke.browser.execute_script(
        """
        window.got = {};
        navigator.clipboard.writeText = async (text) => (got.copied = text);
        const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => (blob.text().then((text) => (got.saved = text)), make(blob));
        """
    )
    smoke.part("copy").click()
    smoke.part("download").click()
    smoke.until("return got.copied && got.saved")
    copied, saved = smoke.browser.execute_script("return [got.copied, got.saved]")
    assert json.loads(copied)["tables"] == json.loads(saved)["tables"] == smoke.found["tables"]
    assert smoke.text("copied") == "Copied."


def test_a_second_visit_is_a_reload_within_the_run(browser, bench_site):
    page = Page(browser, bench_site, model=f"models/{TINY.name}", parts="visits", auto=1)
    result = page.result()
    assert "error" not in result, result["error"]
    first, second = result["visits"]
    assert first["seconds"].keys() == second["seconds"].keys() >= {"worker", "weights", MEASURED}
    assert second["calibration"] == "kept"
    assert all(sum(visit["seconds"].values()) > 1 for visit in (first, second))
    assert second["fetched"] == 0
    assert result["tables"][0]["columns"] == ["seconds", "visit 1", "visit 2"]
    assert browser.execute_script("return sessionStorage.length") == 0


def test_a_visitor_starts_cancels_and_chooses_again(browser, bench_site):
    page = Page(browser, bench_site, **SMOKE | {"parts": "modes", "runs": 50})
    assert page.shown("start") and not page.shown("results")
    page.part("start").click()
    page.until("return globalThis.benchmark?.progress?.startsWith('fixed')")
    assert page.shown("cancel") and not page.part("runs").is_enabled()
    assert "task lamp" in page.text("state")
    page.part("cancel").click()
    result = page.result()
    assert result["error"]["name"] == "StoppedError" and "modes" not in result
    assert page.shown("start") and page.part("runs").is_enabled()
    assert not page.browser.find_element(By.CSS_SELECTOR, "#state .alert").is_displayed()


@pytest.mark.parametrize(
    ("query", "name", "words"),
    [
        ({"parts": "speed"}, "UsageError", "no part speed"),
        ({"parts": "modes", "modes": "fast"}, "UsageError", "'fast' is unknown"),
        ({"parts": "modes", "prompts": "nothing.jsonl"}, "NetworkError", "could not be read: 404"),
        ({"parts": "modes", "model": "models/nothing.gguf"}, "NetworkError", "404"),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(browser, bench_site, query, name, words):
    page = Page(browser, bench_site, **SMOKE | query, auto=1)
    error = page.result()["error"]
    assert error["name"] == name and words in error["message"] and error["remedy"]
    alert = page.browser.find_element(By.CSS_SELECTOR, "#state [role=alert]")
    assert error["message"] in alert.text and error["remedy"] in alert.text
    assert page.shown("start")


def test_a_shape_needs_no_download(browser, bench_site):
    query = SMOKE | {"shape": "tiny", "parts": "modes", "context": 512}
    del query["model"]
    page = Page(browser, bench_site, **query, auto=1)
    result = page.result()
    assert "error" not in result, result["error"]
    assert result["name"] == "shape:tiny" and Select(page.part("model")).first_selected_option.text == "tiny"
    assert [task["reply_tokens"] for task in result["modes"]["tasks"]] == [6]


def test_frames_while_the_model_decodes(browser, bench_site):
    query = {"model": TINY.name, "parts": "frames", "tokens": 8, "windows": 2, "seconds": 0.1, "auto": 1}
    result = Page(browser, bench_site, **query).result()
    assert "error" not in result, result["error"]
    assert result["frames"]["idle"]["fps"] > 0 and {row["window"] for row in result["frames"]["rows"]} == {2}
    (table,) = result["tables"]
    assert table["title"] == "Frames while decoding" and len(table["rows"]) == 1 + len(result["frames"]["rows"])


def test_the_form_fits_a_phone_and_has_names(browser, bench_site):
    page = Page(browser, bench_site)
    before = browser.get_window_size()
    browser.set_window_size(500, 900)
    inner, wide = browser.execute_script("return [document.documentElement.clientWidth, document.body.scrollWidth]")
    browser.set_window_size(before["width"], before["height"])
    assert wide <= inner
    unnamed = "return [...document.querySelectorAll('input, select')].filter((f) => !f.labels.length).length"
    assert browser.execute_script(unnamed) == 0
    boxes = page.browser.find_elements(By.CSS_SELECTOR, "#parts input")
    assert [box.get_attribute("value") for box in boxes if box.is_selected()] == [
        *("widths", "modes", "prefill", "roles", "host"),
    ]
