"""Words of a text as search terms."""

import re
from unicodedata import normalize

__all__ = ["STOPWORDS", "is_general", "terms"]

# Scripts without spaces between words: there two neighbouring characters are a term.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")

# English function words and the verbs of questions. Other languages rely on inverse
# document frequency alone, which comes close on anything longer than a few blocks.
STOPWORDS = frozenset(
    "a about an and are as at be been being but by can could did do does done for from had has have he her "
    "his how i if in into is it its me may might more most my no not of on or our she should so some such "
    "than that the their them then there these they this those to too us was we were what when where which "
    "while who whom whose why will with would you your s t please tell give name many much".split()
)
# Longest first; what is left keeps at least three letters.
_SUFFIXES = (
    *("ations", "ation", "ingly", "ments", "ness", "ment", "ings", "ers", "ing", "ies", "ied", "ely", "est"),
    *("ed", "er", "es", "ly", "or", "al", "e", "s", "y"),
)


def _stem(word: str) -> str:
    """A word without its commonest English endings: crude, but the same for question and page."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    # "running" and "run" meet; "fall" and "less" stay.
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word


def terms(text: str) -> list[str]:
    """Search terms of a text in order: lower case, stemmed, function words left out."""
    found = []
    for word in _WORD.findall(normalize("NFKC", text).casefold()):
        if re.match(rf"[{_UNSPACED}]", word):
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word not in STOPWORDS:
            found.append(_stem(word))
    return found


# What a question about the page as a whole is made of.
_GENERAL = frozenset(
    term
    for term in terms(
        "answer article brief briefly bullet content describe description document dr explain extract fact "
        "first five four gist happened headline idea important information involved json key list long main "
        "matter message named news one only organizations outline overview page paragraph passage people "
        "places point question read rewrite say sentence short single site story subject summarise "
        "summarize summary takeaway talk text thing three title tl tldr topic two webpage website word "
        "write"
    )
)


def is_general(question: str) -> bool:
    """True for a question about the page as a whole ("Summarize", "What is this about?")."""
    return _GENERAL.issuperset(terms(question))
