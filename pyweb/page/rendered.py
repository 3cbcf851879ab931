"""Blocks of a page that isn't an article: a walk over what a browser would show.

Article extractors look for one long text. A forum, a listing or a page of two lines has
none; here every rendered block counts, apart from navigation and the like.
"""

import re
from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement

from pyweb.page.blocks import Block
from pyweb.page.visible import boilerplate, rendered, text_length

__all__ = ["main_content", "walk"]

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LISTS = frozenset(("ul", "ol", "dl", "menu"))
ITEMS = frozenset(("li", "dt", "dd"))
BLOCKS = frozenset(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section "
    "summary table tbody td tfoot th thead title tr ul caption".split()
)
# A list or table around these is a layout, not one block.
_STRUCTURE = frozenset((*HEADINGS, "table", "pre", "blockquote", "article", "section", "figure"))
# A main element with less text than this is a frame that a script has yet to fill.
_MIN_MAIN = 100


def squeeze(text: str) -> str:
    """White space as a browser shows it, with the line breaks of `<br>` (here "\\v") kept."""
    lines = (" ".join(line.split()) for line in text.split("\v"))
    return "\n".join(line for line in lines if line)


def pieces(root: HtmlElement) -> Iterator[tuple[str, object]]:
    """Rendered content below `root` in order: ("text", str), ("start", element), ("end", element)."""
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "start" and not rendered(element):
            walker.skip_subtree()
        elif event == "start":
            yield event, element
            yield "text", element.text or ""
        else:
            yield event, element
            yield "text", (element.tail or "") if element is not root else ""


def text_of(root: HtmlElement) -> str:
    """Rendered text of an element: a line for each block in it and after each `<br>`."""
    parts = []
    for event, value in pieces(root):
        if event == "text":
            parts.append(value.replace("\v", " "))
        elif value.tag in BLOCKS or (value.tag == "br" and event == "end"):
            parts.append("\v")
    return squeeze("".join(parts))


def _verbatim(root: HtmlElement) -> str:
    parts = []
    for event, value in pieces(root):
        if event == "text":
            parts.append(value)
        elif value.tag == "br" and event == "end":
            parts.append("\n")
    return "".join(parts).strip("\r\n").rstrip()


def _defines(definition: HtmlElement) -> bool:
    term = definition.getprevious()
    return term is not None and term.tag == "dt" and rendered(term)


def _list(root: HtmlElement) -> str:
    lines: list[tuple[str, list[str]]] = []
    depth = -1
    for event, value in pieces(root):
        if event == "text":
            if lines:
                lines[-1][1].append(value)
        elif value.tag in LISTS:
            depth += 1 if event == "start" else -1
        elif value.tag == "dd" and event == "start" and _defines(value):
            lines[-1][1][:] = ["".join(lines[-1][1]).rstrip(), ": "]
        elif value.tag in ITEMS and event == "start":
            lines.append(("  " * depth + "- ", []))
        elif lines and (value.tag in BLOCKS or value.tag == "br"):
            lines[-1][1].append(" ")
    shown = ((mark, " ".join("".join(parts).split())) for mark, parts in lines)
    return "\n".join(mark + text for mark, text in shown if text)


def _rows(root: HtmlElement) -> list[list[str]]:
    rows = []
    for row in root.iter("tr"):
        cells = [text_of(cell).replace("\n", " ") for cell in row.iterchildren("td", "th") if rendered(cell)]
        if any(cells) and rendered(row):
            rows.append(cells)
    return rows


def _table(root: HtmlElement) -> str:
    captions = [text_of(caption).replace("\n", " ") for caption in root.iterchildren("caption")]
    return "\n".join(filter(None, (*captions, *(" | ".join(row) for row in _rows(root)))))


def _is_layout(element: HtmlElement) -> bool:
    return any(child.tag in _STRUCTURE for child in element.iterdescendants(etree.Element))


def _is_data_table(table: HtmlElement) -> bool:
    if table.get("role") in ("presentation", "none") or _is_layout(table):
        return False
    rows = _rows(table)
    return len(rows) > 1 and max(map(len, rows)) > 1


def atom(element: HtmlElement) -> Block | None:
    """The element as one block, or None where it is a container (or nothing we have a kind for)."""
    tag = element.tag
    if tag in HEADINGS:
        return Block("heading", text_of(element).replace("\n", " "), int(tag[1]))
    if tag == "pre":
        return Block("code", _verbatim(element))
    if tag == "blockquote" and not _is_layout(element):
        return Block("quote", text_of(element))
    if tag in LISTS and not _is_layout(element):
        return Block("list", _list(element))
    if tag == "table" and _is_data_table(element):
        return Block("table", _table(element))
    return None


class _Collector:
    """Gathers inline text into paragraphs, and finished blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.line: list[str] = []

    def flush(self) -> None:
        text = squeeze("".join(self.line))
        self.line.clear()
        self.add(Block("paragraph", text))

    def add(self, block: Block) -> None:
        if re.search(r"\w", block.text):
            self.blocks.append(block)


def walk(root: HtmlElement, everything: bool = False) -> list[Block]:
    """Blocks of the rendered text below `root`, in document order.

    Args:
        everything: take navigation, footers and the like too.
    """
    collector = _Collector()
    length = text_length(root)
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if not isinstance(element.tag, str):
            if event == "end":
                collector.line.append(element.tail or "")
            continue
        if element.tag in BLOCKS:
            collector.flush()
        if event == "end":
            if element is not root:
                collector.line.append((element.tail or "").replace("\v", " "))
        elif not rendered(element) or (
            not everything and element is not root and boilerplate(element, length)
        ):
            walker.skip_subtree()
        elif (block := atom(element)) is not None:
            collector.add(block)
            walker.skip_subtree()
        else:
            collector.line.append("\v" if element.tag == "br" else (element.text or "").replace("\v", " "))
    collector.flush()
    return collector.blocks


def main_content(tree: HtmlElement) -> list[Block]:
    """Blocks of the page's main part where it marks one, else of its body."""
    mains = [main for main in tree.xpath("//main | //*[@role='main']") if rendered(main)]
    for main in mains[:1]:
        blocks = walk(main)
        if sum(len(block.text) for block in blocks) >= _MIN_MAIN:
            return blocks
    return walk(tree) or walk(tree, everything=True)
