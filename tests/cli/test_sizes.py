"""Where the bytes of a first visit go, and that they are few enough."""

import json

from pyweb.cli import sizes
from pyweb.cli.main import main


def test_a_first_visit_is_within_its_budget():
    parts = sizes.first_visit()
    assert sum(part.sent for part in parts) < sizes.BUDGET
    assert all(0 < part.sent <= part.plain for part in parts)
    assert sum(part.files for part in parts) > 20


def test_the_command_as_table_and_as_json(capsys, monkeypatch):
    monkeypatch.setattr(sizes, "first_visit", lambda: [sizes.Part("a", 1, 2_000_000, 1_000_000)] * 2)
    assert main(["sizes"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "| together | 2 | 4.00 | 2.00 |"
    assert main(["sizes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == {"name": "a", "files": 1, "plain": 2000000, "sent": 1000000}
