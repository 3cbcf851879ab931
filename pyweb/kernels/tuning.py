"""How kernels are cut for a class of device.

What defines an order of additions (`lanes` of a row, `chunk` of attention, `norm_threads`) is one value per model and
device for all widths, so that N tokens in a step give the bits of N single steps. `tile` (tokens a workgroup), `rows`
(rows a thread) and `threads` don't touch the order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["WIDTHS", "Tuning", "choose_tuning"]

WIDTHS = (1, 2, 4, 8, 16, 32)
"""Nodes a step can have."""


@dataclass(frozen=True)
class Tuning:
    """One cut of all kernels.

    `barrier_free` kernels use one thread a row: a workgroup reduction is 5 to 30 times slower on software adapters.
    """

    name: str
    barrier_free: bool
    threads: int
    norm_threads: int
    attention_threads: int
    chunk: int
    choose_segment: int
    rows: int
    tile: int

    def lanes(self, inputs: int) -> int:
        """Threads that share a row of `inputs` columns: the power of two that leaves few of them idle."""
        if self.barrier_free:
            return 1
        blocks = inputs // 32
        return 8 if blocks <= 24 else 16 if blocks <= 64 else 32

    def token_tile(self, width: int) -> int:
        """Tokens whose sums a thread keeps in registers in a step of `width` nodes."""
        return min(width, self.tile)


GPU = Tuning(
    "gpu",
    barrier_free=False,
    threads=128,
    norm_threads=256,
    attention_threads=32,
    chunk=32,
    choose_segment=4096,
    rows=2,
    tile=8,
)
SOFTWARE = Tuning(
    "software",
    barrier_free=True,
    threads=32,
    norm_threads=8,
    attention_threads=4,
    chunk=32,
    choose_segment=64,
    rows=4,
    tile=4,
)


def choose_tuning(info: Mapping[str, object]) -> Tuning:
    """The cut for an adapter, by its `GPUAdapterInfo`."""
    name = f"{info.get('architecture', '')} {info.get('device', '')} {info.get('description', '')}".lower()
    software = any(word in name for word in ("swiftshader", "llvmpipe", "lavapipe", "basic render", "warp"))
    return SOFTWARE if software else GPU
