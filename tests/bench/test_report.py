"""Results as tables and as Markdown."""

import pytest

from pyweb.bench.report import markdown, tables
from pyweb.bench.samples import summary

RESULT = {
    "visits": [
        {"seconds": {"worker": 0.1, "weights": 2.0}, "fetched": 98_000_000},
        {"seconds": {"worker": 0.05, "weights": 0.25}, "fetched": 0},
    ],
    "widths": {"window": 4, "rows": [{"width": 8, "milliseconds": summary([4.0, 2.0, 3.0]), "ratio": 1.5}]},
    "modes": {
        "rows": [
            {
                "mode": "greedy",
                "milliseconds": summary([20.0]),
                "milliseconds_per_step": 20.0,
                "tokens_per_step": 1.0,
                "speedup": 1.0,
            }
        ],
        "tasks": [
            {
                "id": "a|b",
                "prompt_tokens": 30,
                "reply_tokens": 8,
                "tokens_per_step": {"greedy": 1.0},
                "different": ["loop"],
            }
        ],
        "left_out": ["long"],
    },
    "roles": {
        "clock": "wall",
        "empty_gpu": 0.0017,
        "empty_wall": 0.003,
        "bandwidth": 3.9e12,
        "widths": [
            {
                "width": 1,
                "step": {
                    "role": "whole step",
                    "dispatches": 3,
                    "milliseconds": summary([0.5]),
                    "weight_bytes": 5_000_000,
                    "floors": {"dispatch": 0.0051, "memory": 0.0013},
                    "shares": {"dispatch": 0.0102, "memory": 0.0026},
                },
                "rows": [
                    {
                        "role": "attention",
                        "dispatches": 2,
                        "milliseconds": summary([0.0]),
                        "weight_bytes": 0,
                        "floors": {"dispatch": 0.0034, "memory": 0.0},
                        "shares": {"dispatch": None, "memory": None},
                    }
                ],
            }
        ],
    },
    "frames": {
        "idle": {"fps": 60.0, "p50": 16.7, "p99": 17.0},
        "rows": [{"window": 4, "frameBudget": None, "fps": 31.25, "p50": 30, "p99": 51.2, "msPerToken": 7.5}],
    },
}


def rows_of(title: str) -> list[list[str]]:
    return next(table for table in tables(RESULT) if table["title"].startswith(title))["rows"]


def test_only_what_was_measured_has_a_table():
    assert tables({}) == []
    assert [table["title"] for table in tables({"widths": RESULT["widths"]})] == ["A step by its width"]
    assert len(tables(RESULT)) == 6


def test_a_time_has_its_median_and_its_spread():
    assert rows_of("A step by its width") == [["8", "3.00 (2.00–4.00)", "1.50", "0.375"]]


def test_visits_stand_side_by_side_with_their_sums():
    assert rows_of("Until") == [
        ["worker", "0.100", "0.050"],
        ["weights", "2.00", "0.250"],
        ["together", "2.10", "0.300"],
        ["MB of the model fetched", "98.0", "0.000"],
    ]


def test_differing_ids_and_what_was_left_out_are_said():
    note = next(table for table in tables(RESULT) if table["title"] == "Decoding")["note"]
    assert "Different ids: a|b." in note and "Left out, since the context is too short: long." in note


def test_roles_without_weights_or_time_have_dashes_and_the_whole_step_comes_last():
    found = rows_of("GPU time")
    assert found[0] == ["attention", "2", "0.000 (0.000–0.000)", "–", "–", "–"]
    assert found[1] == ["whole step", "3", "0.500 (0.500–0.500)", "1.02", "5.00", "0.260"]
    (table,) = [table for table in tables(RESULT) if table["title"].startswith("GPU time")]
    assert "wall time of large batches" in table["note"] and "1.70 µs a dispatch" in table["note"]


def test_frames_stand_beside_those_of_an_idle_page():
    assert rows_of("Frames") == [
        ["idle", "–", "60.0", "16.7", "17.0", "–", "–"],
        ["4", "–", "31.2", "30.0", "51.2", "7.50", "–"],
    ]


def test_markdown_keeps_its_columns():
    text = markdown(tables(RESULT))
    assert "| a\\|b | 30 | 8 | 1.00 |" in text
    assert text.startswith(
        "### Until a question can be asked\n\n| seconds | visit 1 | visit 2 |\n| --- | ---: | ---: |\n"
    )
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1
    assert markdown([]) == ""


def test_a_summary_keeps_its_samples():
    assert summary([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0, "samples": [3.0, 1.0, 2.0]}
    with pytest.raises(ValueError):
        summary([])
