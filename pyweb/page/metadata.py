"""What a page says about itself: title, language, and whether it is an article."""

import re

from lxml.html import HtmlElement

from pyweb.page.rendered import text_of

__all__ = ["is_article", "language", "title"]

_SCHEMA_TYPE = re.compile(r'"@type"\s*:\s*(\[[^\]]*\]|"[^"]*")')
_ARTICLE_TYPE = re.compile(r"(?:\w*NewsArticle|Article|BlogPosting|Report|LiveBlogPosting)")
_COLLECTION_TYPES = frozenset(("DiscussionForumPosting", "QAPage", "SearchResultsPage", "CollectionPage"))
_SEPARATOR = re.compile(r"\s+[|·•:»/–—-]\s+|:\s+")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


def _meta(tree: HtmlElement, name: str) -> str:
    for meta in tree.iter("meta"):
        if name in (meta.get("property"), meta.get("name")):
            return _clean(meta.get("content") or "")
    return ""


def _clean(text: str) -> str:
    return " ".join(text.split())


def _first(tree: HtmlElement, path: str) -> str:
    for element in tree.iterfind(path):
        if text := _clean(text_of(element)):
            return text
    return ""


def title(tree: HtmlElement) -> str:
    """The page's title: `og:title` or `<title>`, cut to the first `<h1>` where it only adds a site's name."""
    heading = _first(tree, ".//h1")
    stated = _meta(tree, "og:title") or _first(tree, ".//head/title") or heading
    return heading if heading in _SEPARATOR.split(stated) else stated


def language(tree: HtmlElement) -> str:
    """Language tag of the root element, or empty where there is none or it isn't a tag."""
    stated = (tree.get("lang") or tree.get("xml:lang") or "").strip().replace("_", "-")
    return stated if _LANGUAGE.fullmatch(stated) else ""


def _schema_types(tree: HtmlElement) -> set[str]:
    """Types from JSON-LD, from microdata, and from what a snapshot keeps of a live page's JSON-LD."""
    scripts = tree.iterfind(".//script[@type='application/ld+json']")
    stated = [_meta(tree, "schema:type")]
    stated += [match[1] for script in scripts for match in _SCHEMA_TYPE.finditer(script.text or "")]
    stated += [element.get("itemtype") for element in tree.iterfind(".//*[@itemtype]")]
    return set(re.findall(r"\w+", " ".join(stated)))


def is_article(tree: HtmlElement) -> bool:
    """True where the page declares itself an article (Open Graph, schema.org), not a thread or a list."""
    types = _schema_types(tree)
    if not _COLLECTION_TYPES.isdisjoint(types):
        return False
    return (
        any(map(_ARTICLE_TYPE.fullmatch, types))
        or _meta(tree, "og:type") == "article"
        or _meta(tree, "article:published_time") != ""
        or tree.find(".//*[@itemprop='articleBody']") is not None
    )
