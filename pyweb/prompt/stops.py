"""Strings that end a reply, wherever the borders of its tokens lie."""

from collections.abc import Callable, Iterable, Sequence

from pyweb.errors import UsageError
from pyweb.prompt.stream import TextStream

__all__ = ["StopStream"]


class StopStream:
    """A reply's text up to where one of `stops` begins.

    Ids are taken one by one, so the cut doesn't depend on how many arrive together. Text that may be a stop string's
    beginning is held back until the next tokens decide.

    Args:
        decode: see `TextStream`.
        stops: the strings; none cuts nothing.

    Attributes:
        kept: ids that belong to the text once a stop string was found, else None. A token that holds both text and the
            beginning of a stop string is kept.

    Raises:
        UsageError: a stop string is empty.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Iterable[str] = ()):
        self._stream = TextStream(decode)
        self._stops = tuple(stops)
        if not all(isinstance(stop, str) and stop for stop in self._stops):
            raise UsageError("A stop string is empty or no text.", "Give strings of one character at least.")
        self._held = ""
        self._start = 0  # position in the reply's text where `_held` begins
        self._ids = 0
        self._ends: list[tuple[int, int]] = [(0, 0)]  # (text that is there, after so many ids)
        self.kept: int | None = None

    def push(self, ids: Iterable[int]) -> str:
        """Takes the next ids; the text that has become certain. Ids behind a stop string are ignored."""
        out = []
        for number in ids:
            if self.kept is not None:
                break
            self._ids += 1
            out.append(self._take(self._stream.push([number])))
        return "".join(out)

    def finish(self) -> str:
        """The text still held back, when no more ids come."""
        if self.kept is not None:
            return ""
        out = self._take(self._stream.finish())
        if self.kept is None:
            out, self._held = out + self._held, ""
        return out

    def _take(self, piece: str) -> str:
        if not piece:
            return ""
        self._held += piece
        end = self._start + len(self._held)
        self._ends.append((end, self._ids))
        found = [at for at in map(self._held.find, self._stops) if at >= 0]
        if found:
            cut = self._start + min(found)
            self.kept = next(count for reached, count in self._ends if reached >= cut)
            return self._release(min(found))
        return self._release(len(self._held) - self._undecided())

    def _release(self, length: int) -> str:
        out, self._held = self._held[:length], self._held[length:]
        self._start += length
        return out

    def _undecided(self) -> int:
        """Characters at the end of the held text that begin some stop string."""
        longest = max(map(len, self._stops), default=1) - 1
        lengths = range(min(longest, len(self._held)), 0, -1)
        return next((n for n in lengths if any(stop.startswith(self._held[-n:]) for stop in self._stops)), 0)
