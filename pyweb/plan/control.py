"""The control buffer and the request buffer, byte for byte as the kernels read them (shaders/include/control.wgsl).

Control: 32 nodes of 16 bytes, 32 bytes of state, RECORDS step records of 12 bytes, RING tokens. One copy from `STATE`
to the end brings back everything the host wants to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack, unpack_from

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


@dataclass(frozen=True)
class State:
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
        return next((reason for flag, reason in _FINISHED.items() if self.flags & flag), None)

    def tokens(self, start: int) -> list[int]:
        """Reply tokens number `start` to the last."""
        return [unpack_from("<I", self.data, _RING_AT + i % RING * 4)[0] for i in range(start, self.emitted)]

    def records(self, start: int) -> list[tuple[int, int, int]]:
        """(tokens emitted, match length, width) of step `start` to the last."""
        return [
            unpack_from("<3I", self.data, _RECORDS_AT + i % RECORDS * 12) for i in range(start, self.steps)
        ]


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
