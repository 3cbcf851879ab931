"""The waist: what everything above needs of a GPU, and nothing of how it is reached.

Two implementations: `pyweb.device.browser` (the JavaScript bridge, in Pyodide) and the tests' Dawn process, which runs
the same bridge file in node. Handles are positive integers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

__all__ = ["Device", "Source"]


class Source(Protocol):
    """A model file that is read by byte range."""

    size: int

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes of a range: for headers, never for weights."""


class Device(Protocol):
    """A GPU device; raises DeviceLostError, GPUOutOfMemoryError or ShaderError from any call once that happened."""

    info: Mapping[str, object]
    limits: Mapping[str, int]
    features: Collection[str]

    async def buffer(self, size: int, label: str = "") -> int:
        """A zeroed buffer of `size` bytes."""

    def write(self, buffer: int, offset: int, data: bytes) -> None:
        """Small data into a buffer, in order with submissions."""

    def destroy(self, buffer: int) -> None:
        """Frees a buffer."""

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        """Pipelines of (label, WGSL) pairs, compiled side by side."""

    def bind(self, pipeline: int, bindings: Sequence[int]) -> int:
        """A bind group; `bindings` are triples of buffer, offset, size in binding order."""

    def program(self, commands: Sequence[int]) -> int:
        """A program: pipeline, bind group, x, y, z, again and again."""

    def submit(self, program: int, repeats: int = 1, readbacks: Sequence[int] = ()) -> int:
        """One command buffer: the program `repeats` times, then copies of (buffer, offset, size) triples. A ticket."""

    async def collect(self, ticket: int) -> bytes:
        """Waits for a submission; its read-backs, one after the other."""

    async def time(self, program: int, repeats: int = 1) -> float:
        """Nanoseconds of GPU time of one pass that runs the program `repeats` times.

        Raises:
            LimitError: the device lacks the feature `timestamp-query`.
        """

    async def load(
        self,
        source: Source,
        steps: Sequence[int],
        on_progress: Callable[[int, int], None],
        signal: object = None,
    ) -> None:
        """Streams (file offset, length, buffer, buffer offset, program) steps, sorted by offset, into buffers.

        A device in a browser raises StoppedError as soon as `signal` (of weights.js) is stopped.
        """

    def counters(self) -> dict[str, float]:
        """What the bridge did so far: `submits`, `maps`, `dispatches`; milliseconds in `submit` (`encode_ms`) and
        waiting for the GPU in `collect` (`wait_ms`)."""

    def close(self) -> None:
        """Frees everything."""
