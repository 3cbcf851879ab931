"""A second visit downloads nothing: everything is checked with the server and comes from the browser's own stores."""

from pathlib import Path

from pyweb.cli import sizes, visits

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_chat.gguf"


def test_a_second_visit_downloads_nothing():
    first, second = visits.measure(TINY, "software", count=2)
    assert TINY.stat().st_size < first.bytes < sizes.BUDGET
    assert second.bytes == 0 < second.requests
    assert all(visit.total > visit.seconds["weights"] >= 0 for visit in (first, second))
    rows = visits.table([first, second]).splitlines()
    assert len(rows) == len(visits.STAGES) + 5 and rows[-1].endswith("| 0.00 |")
