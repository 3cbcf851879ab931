"""The article of a page: trafilatura's result, brought back to HTML so that one walk makes blocks of both."""

from lxml import etree
from lxml.etree import SubElement, _Element
from lxml.html import HtmlElement

from pyweb.page.blocks import Block
from pyweb.page.library import bare_body
from pyweb.page.rendered import HEADINGS, walk
from pyweb.page.visible import rendered

__all__ = ["article_blocks"]

# trafilatura's names are TEI's.
_TAGS = {"list": "ul", "item": "li", "lb": "br", "row": "tr", "cell": "td", "quote": "blockquote"}
# Metadata that trafilatura reads, and roots that a script shows once it has run.
_KEPT = frozenset(("html", "head", "body", "main", "article", "script", "title", "meta", "link", "base"))
_CODE_PARENTS = frozenset(("body", "div"))


def _mark_code(tree: HtmlElement) -> None:
    """Wraps the content of every plain `<pre>` in `<code>`: trafilatura takes a bare one for a quotation."""
    for pre in tree.iter("pre"):
        if pre.find(".//code") is None:
            children = list(pre)
            code = SubElement(pre, "code")
            code.text, pre.text = pre.text, None
            code.extend(children)


def _drop_unrendered(tree: HtmlElement) -> None:
    """Takes out what the page hides: trafilatura keeps some of it, such as templates and hidden rows."""
    for element in list(tree.iter(etree.Element)):
        if element.tag not in _KEPT and not rendered(element) and element.getparent() is not None:
            element.drop_tree()


def _to_html(body: _Element) -> None:
    for element in body.iter():
        if element.tag == "head":
            rend = element.get("rend", "")
            element.tag = rend if rend in HEADINGS else "h2"
        elif element.tag == "item" and element.get("rend", "")[:3] in ("dt-", "dd-"):
            element.tag = element.get("rend")[:2]
        elif element.tag == "code" and element.getparent().tag in _CODE_PARENTS:
            element.tag = "pre"
        elif element.tag in _TAGS:
            element.tag = _TAGS[element.tag]


def article_blocks(tree: HtmlElement) -> list[Block]:
    """Blocks of the page's article, or none.

    Changes `tree`: hidden parts go, plain `<pre>` is marked as code.
    """
    _drop_unrendered(tree)
    _mark_code(tree)
    body = bare_body(tree)
    if body is None:
        return []
    _to_html(body)
    return walk(body, everything=True)
