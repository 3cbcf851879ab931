"""The prompt's way into the KV cache: chunks, the next ones submitted before the last one is done."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from pyweb.device import Device
from pyweb.engine.pacing import Pacer, run_pieces
from pyweb.engine.programs import Programs

__all__ = ["Prefilling"]



@dataclass(frozen=True)
class _Chunk:
    """A chunk in flight, or the last of its pieces: see `_Window` of the decoding loop. `end` is its last token's."""

    ticket: int
    end: int
    pieces: int
    submitted: float
    worked: float


@dataclass
class Prefilling:
    """One prompt's loop.

    Args:
        width: tokens of a chunk.
        pacer: says how much of the GPU it may take.
        on_progress: called with tokens done and all.
        stopped: asked once a chunk is done; True ends the loop.
        depth: chunks in flight at most.
        head: see `Programs.prefill`.
    """

    device: Device
    programs: Programs
    width: int
    pacer: Pacer
    on_progress: Callable[[int, int], None]
    stopped: Callable[[], bool]
    depth: int
    head: str = ""
    _pending: deque[_Chunk] = field(default_factory=deque, init=False)
    _last: float = field(default=0.0, init=False)

    async def run(self, start: int, total: int) -> int:
        """Computes tokens `start` to `total`; how many of them are there in the end."""
        done = start
        self.on_progress(start, total)
        for first in range(start, total, self.width):
            while len(self._pending) >= self.pacer.depth(self.depth):
                done = await self._collect(total)
            if done > start and self.stopped():
                break
            await self.pacer.rest()
            self._pending.append(await self._submit(first, min(first + self.width, total)))
        while self._pending:
            done = await self._collect(total)
        return done

    async def _submit(self, first: int, end: int) -> _Chunk:
        _, pieces = self.pacer.division(self._kind, 1)
        programs = await self.programs.prefill_pieces(pieces, self.width, first + self.width, self.head)
        worked = await run_pieces(self.device, self.pacer, programs[:-1])
        submitted = self.pacer.clock()
        return _Chunk(self.device.submit(programs[-1]), end, len(programs), submitted, worked)

    async def _collect(self, total: int) -> int:
        chunk = self._pending.popleft()
        await self.device.collect(chunk.ticket)
        now = self.pacer.clock()
        worked = chunk.worked + now - max(self._last, chunk.submitted)
        self.pacer.completed(self._kind, chunk.submitted, worked, 1, chunk.pieces)
        self._last = now
        self.on_progress(chunk.end, total)
        return chunk.end

    @property
    def _kind(self) -> tuple[str, int]:
        return ("prefill", self.width)
