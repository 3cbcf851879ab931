"""The documentation names what is there."""

import re
from pathlib import Path

from pyweb import errors

DOCS = Path(__file__).parents[1] / "docs"


def test_every_error_is_documented():
    documented = set(re.findall(r"`(\w+Error)`", (DOCS / "api.md").read_text()))
    assert documented == set(errors.__all__) | {"PywebError"}


def test_links_lead_somewhere():
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
