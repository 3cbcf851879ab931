"""What a person sees on standard error: progress lines and notes. Standard output belongs to the answer."""

import sys
import time

__all__ = ["Progress", "note", "size_text"]


def note(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)


def size_text(count: int) -> str:
    """Bytes in words: `98.4 MB`."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


class Progress:
    """One line per stage: updated in place on a terminal, printed at the start and the end elsewhere."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._stage = ""
        self._started = 0.0
        self._shown = 0.0
        self._line = ""

    def update(self, stage: str, done: float = 0, total: float = 0, text: str = "") -> None:
        """Shows a stage's state; a new stage ends the one before."""
        now = time.monotonic()
        if stage != self._stage:
            self.finish()
            self._stage, self._started, self._shown = stage, now, 0.0
            if not self._live:
                print(f"{stage} ...", file=self._stream, flush=True)
        self._line = self._describe(stage, done, total, text)
        if self._live and now - self._shown > 0.1:
            self._shown = now
            print(f"\r\x1b[K{self._line}", end="", file=self._stream, flush=True)

    def finish(self) -> None:
        """Ends the current stage's line."""
        if not self._stage:
            return
        taken = f"{self._line}  {time.monotonic() - self._started:.1f} s"
        print(f"\r\x1b[K{taken}" if self._live else taken, file=self._stream, flush=True)
        self._stage = ""

    @staticmethod
    def _describe(stage: str, done: float, total: float, text: str) -> str:
        parts = [stage]
        if total > 1e5:
            parts.append(f"{size_text(int(done))} of {size_text(int(total))}")
        elif total > 1:
            parts.append(f"{done:g} of {total:g}")
        if text:
            parts.append(text)
        return "  ".join(parts)
