"""Where a model's weights go on the GPU, and the steps that stream and repack them from the file."""

from dataclasses import dataclass
from math import prod
from struct import pack

from pyweb.device import Device
from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.models import Decoder, Matrix, Vector
from pyweb.plan.dispatch import Assembler, Binding, Dispatch, Kernel
from pyweb.weights import GGUF, Layout, TensorInfo, layout_of

__all__ = ["PackedMatrix", "WeightPlan", "plan_weights"]

STAGE = 16 * 1024 * 1024  # raw bytes that are repacked in one go
_RANGE = 256  # a uniform range's alignment
_REPACK_THREADS = 64
_BLOCKS_A_THREAD = {"Q4_1": 1, "Q8_0": 2}


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in a runtime layout: buffers of codes and scales."""

    layout: Layout
    rows: int
    columns: int
    codes: Binding
    scales: Binding


@dataclass(frozen=True)
class _Piece:
    """Whole rows of a tensor that are staged and repacked together; `first` is a block number in the target."""

    kind: str
    offset: int
    nbytes: int
    blocks: int
    first: int
    target: PackedMatrix


class WeightPlan:
    """Buffers of every matrix and vector by name, and the load steps that fill them."""

    def __init__(self):
        self.matrices: dict[str, PackedMatrix] = {}
        self.vectors: dict[str, Binding] = {}
        self.steps: list[int] = []
        self.scratch: list[int] = []  # buffers that only loading needs

    @property
    def bytes(self) -> int:
        """Bytes of all matrices on the GPU."""
        return sum(matrix.codes.size + matrix.scales.size for matrix in set(self.matrices.values()))


def _tensor(gguf: GGUF, name: str, shape: tuple[int, ...]) -> TensorInfo:
    tensor = gguf.tensors.get(name)
    if tensor is None:
        raise ModelFileError(f"The model file has no tensor {name}.")
    if shape[0] is not None and tensor.shape != shape or tensor.shape[1:] != shape[1:]:
        raise ModelFileError(f"The tensor {name} has the shape {tensor.shape}, expected {shape}.")
    return tensor


def _check_matrix(gguf: GGUF, matrix: Matrix) -> list[TensorInfo]:
    tensors = [_tensor(gguf, name, (None, matrix.columns)) for name in matrix.sources]
    rows = sum(tensor.shape[0] for tensor in tensors)
    if rows != matrix.rows:
        raise ModelFileError(f"The matrix {matrix.name} has {rows} rows, expected {matrix.rows}.")
    layouts = {layout_of(tensor.kind, tensor.name) for tensor in tensors}
    if len(layouts) > 1:
        kinds = ", ".join(f"{tensor.name} {tensor.kind}" for tensor in tensors)
        raise UnknownModelError(
            f"The tensors of {matrix.name} mix weight types ({kinds}).", "Choose another file."
        )
    return tensors


def _pieces(tensors: list[TensorInfo], target: PackedMatrix) -> list[_Piece]:
    pieces: list[_Piece] = []
    first = 0
    for tensor in tensors:
        row_bytes = tensor.nbytes // tensor.shape[0]
        row_blocks = target.columns // 32
        batch = max(2, STAGE // row_bytes // 2 * 2)  # even, so that two 8-bit scales never straddle pieces
        for row in range(0, tensor.shape[0], batch):
            rows = min(batch, tensor.shape[0] - row)
            place = (tensor.offset + row * row_bytes, rows * row_bytes)
            piece = _Piece(tensor.kind, *place, rows * row_blocks, first, target)
            pieces.append(piece)
            first += piece.blocks
    return pieces


async def _pack(device: Device, gguf: GGUF, matrix: Matrix) -> tuple[PackedMatrix, list[_Piece]]:
    tensors = _check_matrix(gguf, matrix)
    layout = layout_of(tensors[0].kind, tensors[0].name)
    blocks = matrix.rows * matrix.columns // 32
    sizes = (blocks * layout.code_bytes, -(-blocks * layout.scale_bytes // 4) * 4)
    codes = Binding(await device.buffer(sizes[0], f"{matrix.name} codes"), sizes[0])
    scales = Binding(await device.buffer(sizes[1], f"{matrix.name} scales"), sizes[1])
    packed = PackedMatrix(layout, matrix.rows, matrix.columns, codes, scales)
    return packed, _pieces(tensors, packed)


def _repack(piece: _Piece, stage: Binding, ranges: int, number: int) -> Dispatch:
    grid = -(-piece.blocks // (_REPACK_THREADS * _BLOCKS_A_THREAD[piece.kind]))
    bindings = (Binding(ranges, 8, number * _RANGE), stage, piece.target.codes, piece.target.scales)
    return Dispatch(Kernel.of(f"repack_{piece.kind.lower()}"), bindings, (grid, 1, 1))


async def _vector(device: Device, gguf: GGUF, vector: Vector, steps: list[tuple[int, ...]]) -> Binding:
    buffer = await device.buffer(vector.size * 4, vector.name)
    at = 0
    for name in vector.sources:
        tensor = gguf.tensors.get(name)
        if tensor is None or tensor.kind != "F32" or prod(tensor.shape) * 4 + at > vector.size * 4:
            raise ModelFileError(f"The vector {name} is missing, too long or not F32.")
        steps.append((tensor.offset, tensor.nbytes, buffer, at, 0))
        at += tensor.nbytes
    if at != vector.size * 4:
        raise ModelFileError(f"The vector {vector.name} has {at // 4} values, expected {vector.size}.")
    return Binding(buffer, vector.size * 4)


async def plan_weights(device: Device, assembler: Assembler, gguf: GGUF, decoder: Decoder) -> WeightPlan:
    """Allocates a model's weights and plans how they are streamed.

    Raises:
        ModelFileError, UnknownModelError: the file lacks a tensor or has one in a type or shape we don't run.
        GPUOutOfMemoryError: they don't fit.
    """
    plan, pieces, steps = WeightPlan(), [], []
    shared = {} if decoder.head.sources != decoder.embedding.sources else {"head": "embedding"}
    wanted = [decoder.embedding, *([] if shared else [decoder.head])]
    wanted += [matrix for layer in decoder.matrices for matrix in layer.values()]
    for matrix in wanted:
        plan.matrices[matrix.name], parts = await _pack(device, gguf, matrix)
        pieces += parts
    for alias, name in shared.items():
        plan.matrices[alias] = plan.matrices[name]
    for vector in (decoder.final_norm, *(vector for layer in decoder.vectors for vector in layer.values())):
        plan.vectors[vector.name] = await _vector(device, gguf, vector, steps)
    steps += await _plan_pieces(device, assembler, pieces, plan.scratch)
    plan.steps = [number for step in sorted(steps) for number in step]
    return plan


async def _plan_pieces(
    device: Device, assembler: Assembler, pieces: list[_Piece], scratch: list[int]
) -> list[tuple[int, ...]]:
    size = (
        -(-max(piece.nbytes for piece in pieces) // 4) * 4 + 4
    )  # a last odd 8-bit block is read a word further
    stage = Binding(await device.buffer(size, "stage"), size)
    ranges = await device.buffer(len(pieces) * _RANGE, "ranges")
    table = b"".join(pack("<2I", piece.first, piece.blocks).ljust(_RANGE, b"\0") for piece in pieces)
    device.write(ranges, 0, table)
    scratch += (stage.buffer, ranges)
    dispatches = [_repack(piece, stage, ranges, number) for number, piece in enumerate(pieces)]
    await assembler.compile(dispatch.kernel for dispatch in dispatches)
    programs = [device.program(assembler.commands([dispatch])) for dispatch in dispatches]
    return [
        (piece.offset, piece.nbytes, stage.buffer, 0, program)
        for piece, program in zip(pieces, programs, strict=True)
    ]
