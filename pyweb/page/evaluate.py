"""Measures extraction and selection on files that aren't part of the project.

    python -m pyweb.page.evaluate FOLDER            article text of pages, as F1
    python -m pyweb.page.evaluate --passages FILE   right passages kept, as a share

FOLDER holds pages as `NAME.html` or `NAME.html.gz` and `ground-truth.json`, an object from
NAME to `{"articleBody": text}`: the layout of github.com/scrapinghub/article-extraction-benchmark,
whose measure is used. FILE has a JSON object a line; those of task `passage_qa` have the
passage in `page` and the question in `instruction`.
"""

import argparse
import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from statistics import mean

from pyweb.errors import EmptyPageError, PywebError, UsageError
from pyweb.page import Block, Page, extract, select

__all__ = ["article_scores", "main", "passages_kept"]

_SHINGLE = 4
# English text has 4 to 5 characters a token with the tokenizers of small models; the
# measurement needs no model's own.
_TOKEN_LENGTH = 4
_PADDING = 4
# A passage counts as kept with this share of what could be kept of it.
_KEPT_SHARE = 0.5


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    tokens = re.findall(r"\w+", text)
    starts = range(max(1, len(tokens) - _SHINGLE + 1)) if tokens else ()
    return Counter(tuple(tokens[i : i + _SHINGLE]) for i in starts)


def _precision_recall(true: str, predicted: str) -> tuple[float | None, float | None]:
    """Of one page's shingles; None where a side is empty, which the benchmark leaves out of its mean."""
    expected, found = _shingles(true), _shingles(predicted)
    common = (expected & found).total()
    precision = common / found.total() if found else None
    recall = common / expected.total() if expected else None
    return precision, recall


def article_scores(pairs: Iterable[tuple[str, str]]) -> tuple[float, float, float]:
    """Precision, recall and F1 of (true, predicted) texts: means over pages, F1 of the means."""
    scores = [_precision_recall(true, predicted) for true, predicted in pairs]
    precision = mean(p for p, _ in scores if p is not None)
    recall = mean(r for _, r in scores if r is not None)
    return precision, recall, 2 * precision * recall / (precision + recall)


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return extract(gzip.decompress(data) if path.suffix == ".gz" else data).text
    except EmptyPageError:
        return ""


def _pages(folder: Path) -> Iterable[tuple[str, str]]:
    truth = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    for name, entry in truth.items():
        path = next((p for p in (folder / f"{name}.html.gz", folder / f"{name}.html") if p.exists()), None)
        if path is None:
            raise UsageError(f"{folder} has no page {name}.")
        yield entry.get("articleBody") or "", _text(path)


def _count(text: str) -> int:
    return ceil(len(text) / _TOKEN_LENGTH)


def _chunks(passage: str, words: int) -> list[str]:
    tokens = passage.split()
    return [" ".join(tokens[i : i + words]) for i in range(0, len(tokens), words)]


def passages_kept(passages: Sequence[tuple[str, str]], budget: int, words: int, seed: int = 0) -> float:
    """Share of (question, passage) pairs whose passage survives among others of four times the budget.

    Args:
        budget: tokens, at four characters each.
        words: length of the paragraphs that passages are broken into.
        seed: of the choice and order of the other passages.
    """
    kept = 0
    for number, (question, passage) in enumerate(passages):
        chance = random.Random(f"{seed} {number}")
        others = [other for _, other in passages if other != passage]
        chance.shuffle(others)
        page = [passage]
        while others and sum(map(_count, page)) < _PADDING * budget:
            page.append(others.pop())
        chance.shuffle(page)
        blocks = [Block("paragraph", chunk) for text in page for chunk in _chunks(text, words)]
        chosen = select(Page("", tuple(blocks)), question, budget, _count)
        whole = " ".join(passage.split())
        found = sum(_count(block.text) for block in chosen if block.text in whole)
        kept += found >= _KEPT_SHARE * min(budget, _count(whole))
    return kept / len(passages)


def _report_passages(file: Path) -> None:
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    passages = [(line["instruction"], line["page"]) for line in lines if line["task"] == "passage_qa"]
    for budget in (400, 1536):
        for words in (500, 100, 50):
            kept = mean(passages_kept(passages, budget, words, seed) for seed in range(5))
            print(f"budget {budget:5}  paragraphs of {words:3} words  kept {kept:.3f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pyweb.page.evaluate", description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path, help="folder of pages, or file of passages")
    parser.add_argument("--passages", action="store_true", help="measure the selection of blocks instead")
    options = parser.parse_args(arguments)
    try:
        if options.passages:
            _report_passages(options.path)
        else:
            precision, recall, f1 = article_scores(_pages(options.path))
            print(f"precision {precision:.4f}  recall {recall:.4f}  F1 {f1:.4f}")
    except OSError as error:
        print(f"UsageError: {error}", file=sys.stderr)
        return 1
    except PywebError as error:
        print(f"{error.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
