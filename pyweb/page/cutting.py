"""Cuts a block that is too large, at the borders of sentences or lines."""

import re
from collections.abc import Callable
from dataclasses import replace

from pyweb.page.blocks import Block

__all__ = ["cut"]

_SENTENCE = re.compile(r"""(?<=[.!?…])["'”’)\]]*\s+|(?<=[。！？])|\n""")
# Text without borders, such as minified code or a script without full stops, is cut here at the latest.
_MAX_PIECE = 400
_LINES = frozenset(("list", "table", "code"))


def _wrap(piece: str) -> list[str]:
    parts = []
    while len(piece) > _MAX_PIECE:
        at = piece.rfind(" ", 1, _MAX_PIECE)
        at = at if at > 0 else _MAX_PIECE
        parts.append(piece[:at])
        piece = piece[at:]
    return [*parts, piece]


def _split(block: Block) -> list[str]:
    """Pieces that make the block's text when joined."""
    if block.kind in _LINES:
        pieces = block.text.splitlines(keepends=True)
    else:
        ends = [match.end() for match in _SENTENCE.finditer(block.text)]
        pieces = [block.text[a:b] for a, b in zip([0, *ends], [*ends, len(block.text)], strict=True)]
    return [part for piece in pieces if piece for part in _wrap(piece)]


def _window(scores: list[float], costs: list[int], room: int) -> tuple[int, int]:
    """Range of pieces around the best one, grown on the better side as long as it fits."""
    start = max(range(len(scores)), key=lambda i: (scores[i], -i))
    end, left = start, room
    while True:
        sides = []
        if start > 0 and costs[start - 1] <= left:
            sides.append((scores[start - 1], 0))
        if end < len(costs) and costs[end] <= left:
            # What follows explains more often than what precedes; the best piece itself comes first.
            sides.append((scores[end], 1))
        if not sides or (end == start and costs[start] > left):
            return start, end
        if end == start or max(sides)[1]:
            left -= costs[end]
            end += 1
        else:
            start -= 1
            left -= costs[start]


def cut(
    block: Block, room: int, score: Callable[[str], float], count: Callable[[str], int]
) -> Block | None:
    """The best contiguous part of a block that takes at most `room` tokens, or None where no piece fits.

    A table keeps its first row.
    """
    pieces = _split(block)
    head = ""
    if block.kind == "table" and len(pieces) > 1:
        head, *pieces = pieces
        room -= count(head)
    # Each piece is counted with its own blank line: the sum is never less than the whole.
    costs = [count(piece + "\n\n") for piece in pieces]
    start, end = _window([score(piece) for piece in pieces], costs, room)
    text = head + "".join(pieces[start:end])
    if start == end or not text.strip():
        return None
    return replace(block, text=text.rstrip() if block.kind in _LINES else text.strip())
