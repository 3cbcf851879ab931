"""Cuts a block that is too large, at the borders of sentences or lines."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

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


def _window(scores: list[float], cost: Callable[[int], int], room: int) -> tuple[int, int]:
    """Range of pieces around the best one, grown on the better side as long as it fits."""
    start = max(range(len(scores)), key=lambda i: (scores[i], -i))
    if cost(start) > room:
        return start, start
    end, left = start + 1, room - cost(start)
    while True:
        back = start > 0 and cost(start - 1) <= left
        ahead = end < len(scores) and cost(end) <= left
        # On a tie forward: what follows explains more often than what precedes.
        if ahead and not (back and scores[start - 1] > scores[end]):
            left -= cost(end)
            end += 1
        elif back:
            start -= 1
            left -= cost(start)
        else:
            return start, end


def cut(block: Block, room: int, score: Callable[[str], float], count: Callable[[str], int]) -> Block | None:
    """The best contiguous part of a block that takes at most `room` tokens, or None where no piece fits.

    A table keeps its first row.

    Args:
        room: tokens, the blank line after the block included.
        score: how much a text matters.
        count: tokens of a text.
    """
    pieces = _split(block)
    head = ""
    if block.kind == "table" and len(pieces) > 1:
        head, *pieces = pieces
        room -= count(head)
    # Counting is the dear part on a long block: only pieces near the best are counted, each
    # with a blank line of its own, so that the sum is hardly ever less than the whole.
    cost = cache(lambda i: count(pieces[i] + "\n\n"))
    start, end = _window([score(piece) for piece in pieces], cost, room)
    text = head + "".join(pieces[start:end])
    if start == end or not text.strip():
        return None
    return replace(block, text=text.rstrip() if block.kind in _LINES else text.strip())
