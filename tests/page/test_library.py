"""Extraction without the packages that the browser leaves out."""

import json
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

from pyweb.page import extract

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))

# Blocks the packages in a fresh interpreter, then prints every page and the modules that got in.
SCRIPT = """
import json, sys
from dataclasses import astuple
from pathlib import Path

BLOCKED = {"courlan", "htmldate", "urllib3", "certifi", "babel", "dateparser", "tld", "lxml_html_clean"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from pyweb.page import extract

pages = [astuple(extract(Path(path).read_bytes())) for path in sys.argv[1:]]
print(json.dumps([pages, sorted(BLOCKED & {name.partition(".")[0] for name in sys.modules})]))
"""


def test_pages_are_the_same_with_stand_ins():
    command = [sys.executable, "-c", SCRIPT, *map(str, PAGES)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pages, leftover = json.loads(output)
    assert pages == json.loads(json.dumps([astuple(extract(path.read_bytes())) for path in PAGES]))
    assert leftover == []
