"""The text of a reply as it goes out."""

from collections.abc import Callable, Iterable

from pyweb.errors import DeviceLostError
from pyweb.prompt import StopStream, Tokenizer

__all__ = ["Output"]


class Output:
    """The text of a reply as it goes out, also where the reply is computed a second time."""

    def __init__(self, tokenizer: Tokenizer, stops: Iterable[str], on_text: Callable[[str], None]):
        self._decode, self._stops, self._on_text = tokenizer.decode, tuple(stops), on_text
        self.text = ""
        self._shown = ""
        self.begin()

    def begin(self) -> None:
        self._stream = StopStream(self._decode, self._stops)
        self.text = ""

    def push(self, ids: list[int]) -> int | None:
        """Takes new ids; how many of all to keep where a stop string ends the reply."""
        self._emit(self._stream.push(ids))
        return self._stream.kept

    def finish(self) -> None:
        self._emit(self._stream.finish())

    def _emit(self, piece: str) -> None:
        """Shows what wasn't shown before the GPU was lost: the same device gives the same reply."""
        self.text += piece
        if not self.text.startswith(self._shown[: len(self.text)]):
            raise DeviceLostError(
                "The GPU was lost within the reply, and the one now used gives another.", "Ask again."
            )
        new = self.text[len(self._shown) :]
        if new:
            self._shown = self.text
            self._on_text(new)
