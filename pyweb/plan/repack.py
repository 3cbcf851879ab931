"""From a file to the GPU: what is staged together, and the kernels that bring it to its place and layout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from struct import pack

from pyweb.device import Device
from pyweb.plan.allocation import allocate_binding
from pyweb.plan.dispatch import Assembler, Binding, Dispatch, Kernel
from pyweb.plan.packed import PackedMatrix
from pyweb.weights import TensorInfo

__all__ = ["Piece", "Step", "load_steps", "matrix_pieces", "vector_piece"]

STAGE = 16 * 1024 * 1024  # raw bytes that are repacked in one go
_BEHIND = 4  # a last odd block of half-words is read a word further
_ALIGNED = 256  # a storage range's alignment
_THREADS = 64

Step = tuple[int, int, int, int, int]
"""File offset, length, buffer, buffer offset, program."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a file that are staged and repacked together.

    `kernel` is given (first, count), the stage and the targets; the `count` items go to item `first` and following ones
    of the targets, and a thread does `unit` of them.
    """

    offset: int
    nbytes: int
    kernel: Kernel
    first: int
    count: int
    unit: int
    targets: tuple[Binding, ...]


def matrix_pieces(tensors: Sequence[TensorInfo], packed: PackedMatrix, cut: bool, limit: int) -> Iterator[Piece]:
    """Whole rows of a matrix's sources, an even number of them, so that two scales in a word never straddle pieces.

    Args:
        cut: as in `Matrix`.
        limit: bytes of the largest buffer.
    """
    room = min(STAGE, limit - _BEHIND)
    row_blocks, above = packed.columns // 32, 0
    for number, tensor in enumerate(tensors):
        kernel = Kernel.of("repack", KIND=tensor.kind, **packed.layout.numbers)
        row_bytes = tensor.nbytes // tensor.shape[0]
        batch = max(2, room // row_bytes // 2 * 2)
        for part in packed.slices:
            start, end = (part.first, part.first + part.rows) if cut else (0, tensor.shape[0])
            place = number * part.rows if cut else above
            for row in range(start, end, batch):
                rows = min(batch, end - row)
                yield Piece(
                    offset=tensor.offset + row * row_bytes,
                    nbytes=rows * row_bytes,
                    kernel=kernel,
                    first=(place + row - start) * row_blocks,
                    count=rows * row_blocks,
                    unit=2,
                    targets=(part.codes, part.scales),
                )
        above += tensor.shape[0]


def vector_piece(tensor: TensorInfo, target: Binding, first: int) -> Piece:
    """A vector in 16 bits, which becomes f32 values `first` and following of `target`."""
    kernel = Kernel.of("widen", KIND=tensor.kind)
    return Piece(tensor.offset, tensor.nbytes, kernel, first, prod(tensor.shape), 1, (target,))


async def load_steps(device: Device, assembler: Assembler, pieces: Sequence[Piece], scratch: list[int]) -> list[Step]:
    """Allocates the stage, compiles the kernels and binds each piece; what only loading needs joins `scratch`.

    Raises:
        LimitError, GPUOutOfMemoryError: the stage is too large.
    """
    size = -(-max(piece.nbytes for piece in pieces) // 4) * 4 + _BEHIND
    stage = await allocate_binding(device, size, "stage")
    ranges = await allocate_binding(device, len(pieces) * _ALIGNED, "ranges")
    table = b"".join(pack("<2I", piece.first, piece.count).ljust(_ALIGNED, b"\0") for piece in pieces)
    device.write(ranges.buffer, 0, table)
    scratch += (stage.buffer, ranges.buffer)
    dispatches = [
        Dispatch(
            piece.kernel,
            (Binding(ranges.buffer, 8, number * _ALIGNED), stage, *piece.targets),
            (-(-piece.count // (_THREADS * piece.unit)), 1, 1),
        )
        for number, piece in enumerate(pieces)
    ]
    await assembler.compile(dispatch.kernel for dispatch in dispatches)
    programs = [device.program(assembler.commands([dispatch])) for dispatch in dispatches]
    return [
        (piece.offset, piece.nbytes, stage.buffer, 0, program) for piece, program in zip(pieces, programs, strict=True)
    ]
