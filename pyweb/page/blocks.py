"""What a page is to the rest of the project: a title and typed blocks in document order."""

from dataclasses import dataclass

__all__ = ["KINDS", "Block", "Page"]

KINDS = ("heading", "paragraph", "list", "table", "code", "quote")


@dataclass(frozen=True)
class Block:
    """One block of a page.

    `kind` is one of `KINDS`. `text` has one item a line ("- " in front) in a list, one row
    a line (cells joined by " | ") in a table, and is verbatim in code. `level` is 1 to 6
    for a heading and 0 for anything else.
    """

    kind: str
    text: str
    level: int = 0


@dataclass(frozen=True)
class Page:
    """What was extracted from a page. `language` is a BCP 47 tag as the page states it, or empty."""

    title: str
    blocks: tuple[Block, ...]
    url: str = ""
    language: str = ""

    @property
    def text(self) -> str:
        """All blocks joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks)
