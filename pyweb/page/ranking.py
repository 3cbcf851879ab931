"""Scores texts for a question: Okapi BM25 over stemmed words and word pairs.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.5.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log

from pyweb.page.words import terms

__all__ = ["Ranking"]

# The paper's usual values.
_K1, _B = 1.2, 0.75
# A pair of neighbouring words says less than its two words, which count as well.
_PAIR_WEIGHT = 0.5


def _features(text: str) -> Counter[str | tuple[str, str]]:
    words = terms(text)
    return Counter((*words, *pairwise(words)))


class Ranking:
    """BM25 of a question against texts; word frequencies are taken from `corpus`."""

    def __init__(self, question: str, corpus: Sequence[str]):
        self._question = set(_features(question))
        documents = [_features(text) for text in corpus]
        self._mean = sum(map(Counter.total, documents)) / max(1, len(documents)) or 1.0
        seen = Counter(feature for document in documents for feature in document.keys() & self._question)
        self._idf = {
            feature: log(1 + (len(documents) - seen[feature] + 0.5) / (seen[feature] + 0.5))
            for feature in self._question
        }
        self.scores = [self._score(document) for document in documents]

    def score(self, text: str) -> float:
        """BM25 of a text that needn't be in the corpus; 0 where it shares no word with the question."""
        return self._score(_features(text))

    def _score(self, document: Counter[str | tuple[str, str]]) -> float:
        norm = _K1 * (1 - _B + _B * document.total() / self._mean)
        total = 0.0
        for feature in document.keys() & self._question:
            weight = _PAIR_WEIGHT if isinstance(feature, tuple) else 1.0
            frequency = document[feature]
            total += weight * self._idf[feature] * frequency * (_K1 + 1) / (frequency + norm)
        return total
