"""The drafter's buffers and dispatches: after each step, the next tree into the control buffer's nodes.

The algorithm and its numpy twin are in `pyweb/speculation/fixed.py`; `shaders/draft_*.wgsl` compute the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

from pyweb.device import Device
from pyweb.plan.buffers import Buffers
from pyweb.plan.dispatch import Binding, Dispatch, Kernel

__all__ = ["DraftPlan"]

_BLOCK, _BLOCK_KEEPS = 1024, 16
_OWN, _REMEMBERED = 24, 16
_DRAFT_BYTES = 16 + 16 * (_OWN + _REMEMBERED)
_NONE = 0xFFFFFFFF


@dataclass(frozen=True)
class DraftPlan:
    """Drafting for one loaded model.

    Bindings: `memory` holds up to `capacity` tokens of earlier replies; `draft` the list of frequent tokens; `places`
    count and positions of every token of the vocabulary; `keys` the best matches of each block of 1,024 positions.
    `trust` are 256ths by match length for the two sides (prompt and reply, memory).
    """

    vocabulary: int
    capacity: int
    trust: tuple[tuple[int, ...], tuple[int, ...]]
    buffers: Buffers
    memory: Binding
    draft: Binding
    places: Binding
    keys: Binding

    @classmethod
    async def allocate(
        cls,
        device: Device,
        vocabulary: int,
        buffers: Buffers,
        capacity: int,
        trust: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> "DraftPlan":
        """Allocates for a memory of up to `capacity` tokens.

        Raises:
            GPUOutOfMemoryError: it doesn't fit.
        """
        blocks = -(-(capacity + buffers.slots) // _BLOCK)
        sizes = {
            "memory": max(capacity, 1) * 4,
            "draft": _DRAFT_BYTES,
            "places": vocabulary * 16,
            "keys": blocks * _BLOCK_KEEPS * 4,
        }
        made = {name: Binding(await device.buffer(size, f"drafting {name}"), size) for name, size in sizes.items()}
        return cls(vocabulary, capacity, trust, buffers, **made)

    def writes(
        self, memory: Sequence[int], common: Sequence[tuple[int, int, int, int]], room: int = 0
    ) -> list[tuple[int, int, bytes]]:
        """What the host writes at the start of a request: (buffer, offset, data).

        Args:
            memory: tokens of earlier replies.
            common: (token, count, latest, previous position or -1) of the memory's most frequent tokens, best first.
            room: tokens behind the memory that are left for suggestions.
        """
        rows = b"".join(pack("<4I", *row[:3], row[3] if row[3] >= 0 else _NONE) for row in common)
        head = pack("<4I", len(memory) + room, 0, 0, len(common)) + bytes(16 * _OWN)
        out = [(self.draft.buffer, 0, head + rows)]
        return out + ([(self.memory.buffer, 0, pack(f"<{len(memory)}I", *memory))] if memory else [])

    def erased(self) -> list[tuple[int, int, bytes]]:
        """Writes that leave nothing of the memory on the GPU."""
        return [(self.memory.buffer, 0, bytes(self.memory.size)), (self.draft.buffer, 0, bytes(_DRAFT_BYTES))]

    def begin(self) -> list[Dispatch]:
        """Once a request: no token is counted."""
        grid = (-(-self.vocabulary // 64), 1, 1)
        return [Dispatch(Kernel.of("draft_begin", M=self.vocabulary), (self.places,), grid)]

    def dispatches(self, remembered: int) -> list[Dispatch]:
        """The next tree, with up to `remembered` tokens of memory."""
        b = self.buffers
        blocks = -(-(remembered + b.slots) // _BLOCK)
        count = (b.control_head, b.context, self.draft, self.places)
        scan = (b.control_head, b.context, self.memory, self.draft, self.keys)
        merge = (b.control_head, b.context, self.memory, self.draft, self.keys)
        return [
            Dispatch(Kernel.of("draft_count"), count, (1, 1, 1)),
            Dispatch(Kernel.of("draft_scan"), scan, (blocks, 1, 1)),
            Dispatch(Kernel.of("draft_merge", TRUST=self.trust), merge, (1, 1, 1)),
        ]
