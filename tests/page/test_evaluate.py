import gzip
import json

import pytest

from pyweb.page.evaluate import article_scores, main

WORDS = "one two three four five six"


def test_scores_are_means_over_pages_of_four_token_shingles():
    # Three shingles expected; two of the four found are right.
    precision, recall, f1 = article_scores([(WORDS, "one two three four five ZZ YY"), (WORDS, WORDS)])
    assert (precision, recall) == pytest.approx(((0.5 + 1) / 2, (2 / 3 + 1) / 2))
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_page_without_prediction_counts_for_recall_only():
    assert article_scores([(WORDS, ""), (WORDS, WORDS)])[:2] == (1.0, 0.5)


def test_folder_of_pages(tmp_path, capsys):
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(f"<p>{WORDS}</p>".encode()))
    (tmp_path / "b.html").write_text(f"<p>{WORDS}</p>")
    (tmp_path / "ground-truth.json").write_text(json.dumps({n: {"articleBody": WORDS} for n in "ab"}))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "precision 1.0000  recall 1.0000  F1 1.0000\n"


def test_missing_page_is_named(tmp_path, capsys):
    (tmp_path / "ground-truth.json").write_text('{"lost": {"articleBody": "x"}}')
    assert main([str(tmp_path)]) == 1
    assert "UsageError" in (error := capsys.readouterr().err)
    assert "lost" in error


def test_passages(tmp_path, capsys):
    animals = "otter heron badger lynx marten stoat weasel adder newt toad".split()
    lines = [
        {
            "task": "passage_qa",
            "instruction": f"Where does the {animal} sleep?",
            "page": f"The {animal} sleeps in place {i}. " + "More is not known of it. " * 80,
        }
        for i, animal in enumerate(animals)
    ]
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(map(json.dumps, [*lines, {"task": "other"}])))
    assert main(["--passages", str(file)]) == 0
    report = capsys.readouterr().out.splitlines()
    assert len(report) == 6
    assert "kept 1.000" in report[0]
