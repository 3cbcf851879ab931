"""Tells what a browser renders, and what of that is furniture around the content."""

import re

from lxml.html import HtmlElement

__all__ = ["boilerplate", "rendered", "text_length"]

# Never shown, or shown as something else than text.
_UNRENDERED = frozenset(
    "head script style template noscript iframe object embed applet svg math canvas audio video picture map "
    "select option optgroup datalist textarea input button meter progress".split()
)
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.I)

_FURNITURE = frozenset(("nav", "footer", "search"))
_FURNITURE_ROLES = frozenset(
    "navigation banner contentinfo search menu menubar toolbar dialog alertdialog tablist".split()
)
# Words of class and id that name furniture on any site.
_FURNITURE_WORDS = frozenset(
    "ad ads advert advertisement banner breadcrumb breadcrumbs consent cookie cookies copyright footer gdpr "
    "login masthead menu modal nav navbar navigation newsletter pager pagination popup promo recommendations "
    "related share sharing sidebar signin signup skip social sponsored subscribe toolbar topbar "
    "trending".split()
)
_WORD = re.compile(r"[a-z]+")
# Content lives in these and around a main element or a title: there a class name proves nothing.
_CONTENT = ("html", "body", "main", "article", "h1")
_CORE = ("main", "h1")
_LANDMARKS = frozenset(("main", "article", "section"))
# A form with less text than this is an interface; a longer one wraps content (ASP.NET wraps whole pages).
_MAX_FORM = 300
# "share" in a class name may mean a story to be shared: what holds this much of the page is content.
_MAX_SHARE = 0.25
# An aside with more of its text in links than this points elsewhere, with less it is a note.
_LINK_SHARE = 0.4


def rendered(element: HtmlElement) -> bool:
    """False for an element whose text a browser doesn't show (by markup alone; there are no style sheets)."""
    return isinstance(element.tag, str) and not (
        element.tag in _UNRENDERED
        or element.get("hidden") is not None
        or (element.tag == "dialog" and element.get("open") is None)
        or element.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(element.get("style", ""))
    )


def _inside(element: HtmlElement, tags: frozenset[str]) -> bool:
    return any(above.tag in tags or above.get("role") == "main" for above in element.iterancestors())


def _link_share(element: HtmlElement) -> float:
    total = len("".join(element.itertext()).strip())
    linked = sum(len("".join(link.itertext()).strip()) for link in element.iter("a"))
    return linked / total if total else 1.0


def text_length(element: HtmlElement) -> int:
    return len(" ".join("".join(element.itertext()).split()))


def _named_furniture(element: HtmlElement, page_length: int) -> bool:
    words = _WORD.findall(f"{element.get('class', '')} {element.get('id', '')}".lower())
    if _FURNITURE_WORDS.isdisjoint(words) or element.tag in _CONTENT:
        return False
    if next(element.iter(*_CORE), None) is not None:
        return False
    return text_length(element) < _MAX_SHARE * page_length


def boilerplate(element: HtmlElement, page_length: int) -> bool:
    """True for navigation, banners, footers, advertisements, short forms and the like."""
    tag = element.tag
    if tag in _FURNITURE:
        # The footer of an article or quotation names its author or source.
        return not (tag == "footer" and _inside(element, frozenset(("blockquote",))))
    if element.get("role") in _FURNITURE_ROLES:
        return True
    if tag == "header" or element.get("id") == "header":
        return not _inside(element, _LANDMARKS) and next(element.iter("h1"), None) is None
    if tag == "aside":
        return not _inside(element, frozenset(("main", "article"))) or _link_share(element) > _LINK_SHARE
    if tag == "form":
        return text_length(element) < _MAX_FORM
    return _named_furniture(element, page_length)
