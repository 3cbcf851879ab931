"""The control buffer and the request buffer, byte for byte as the kernels read them (shaders/include/control.wgsl).

Control: 32 nodes of 16 bytes, 32 bytes of state, RECORDS step records of 12 bytes, RING tokens. One copy from `STATE`
to the end brings back everything the host wants to know.
"""

from collections.abc import Sequence
from struct import pack, unpack_from
from typing import NamedTuple

from pyweb.errors import UsageError

__all__ = [
    "CONTROL_BYTES",
    "LONGEST_PATH",
    "MAX_NODES",
    "MAX_STOPS",
    "READBACK_BYTES",
    "RECORDS",
    "REQUEST_BYTES",
    "RING",
    "STATE",
    "State",
    "initial_state",
    "parse_nodes",
    "parse_state",
    "request_bytes",
]

MAX_NODES = 32
LONGEST_PATH = 9  # node 0 and a draft at most 8 deep
MAX_STOPS = 12
RECORDS = 96  # three windows in flight of up to 32 steps
RING = 1024  # three such windows of 9 tokens a step, rounded up
STATE = MAX_NODES * 16
_RECORDS_AT = 32
_RING_AT = _RECORDS_AT + RECORDS * 12
READBACK_BYTES = _RING_AT + RING * 4
CONTROL_BYTES = STATE + READBACK_BYTES
REQUEST_BYTES = 16 + MAX_STOPS * 4

_FINISHED = {1: "stop", 2: "length", 4: "length"}


class State(NamedTuple):
    """What a window brought back."""

    length: int
    valid: int
    context_length: int
    flags: int
    emitted: int
    steps: int
    data: bytes

    @property
    def finish_reason(self) -> str | None:
        """ "stop" for a stop token, "length" for the token limit or a full context, None while unfinished."""
        if not self.flags:
            return None
        return next((reason for flag, reason in _FINISHED.items() if self.flags & flag), None)

    def tokens(self, start: int) -> list[int]:
        """Reply tokens number `start` to the last."""
        return list(_ring(self.data, _RING_AT, RING, 1, start, self.emitted))

    def records(self, start: int) -> list[tuple[int, int, int]]:
        """(tokens emitted, match length, width) of step `start` to the last."""
        words = _ring(self.data, _RECORDS_AT, RECORDS, 3, start, self.steps)
        return list(zip(words[::3], words[1::3], words[2::3], strict=True))


def _ring(data: bytes, at: int, size: int, words: int, start: int, end: int) -> tuple[int, ...]:
    """The words of entries number `start` to `end` of a ring of `size` entries at byte `at`."""
    count, first = max(end - start, 0), start % size
    straight = min(count, size - first)
    found = unpack_from(f"<{straight * words}I", data, at + first * words * 4)
    return found if straight == count else found + unpack_from(f"<{(count - straight) * words}I", data, at)


def parse_state(data: bytes) -> State:
    """The read-back of a window."""
    length, valid, context_length, flags, emitted, steps, _width, _match = unpack_from("<8I", data)
    return State(length, valid, context_length, flags, emitted, steps, data)


def parse_nodes(data: bytes, valid: int) -> list[tuple[int, int]]:
    """(token, parent) of a tree's nodes, from a read-back of the control buffer's beginning."""
    return [unpack_from("<2I", data, 16 * node) for node in range(valid)]


def initial_state(committed: int, context_length: int) -> bytes:
    """State at the start of a request whose first `committed` positions are in the KV cache already."""
    return pack("<8I", committed, 0, context_length, 0, 0, 0, 0, 0)


def request_bytes(token_limit: int, context_limit: int, prompt_length: int, stops: Sequence[int]) -> bytes:
    """The request buffer.

    Raises:
        UsageError: more stop tokens than the kernel holds.
    """
    if len(stops) > MAX_STOPS:
        raise UsageError(f"A reply can have {MAX_STOPS} stop tokens, not {len(stops)}.")
    padded = [*stops, *[0] * (MAX_STOPS - len(stops))]
    return pack(f"<4I{MAX_STOPS}I", token_limit, context_limit, prompt_length, len(stops), *padded)
