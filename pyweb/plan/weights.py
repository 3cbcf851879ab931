"""Where a model's weights go on the GPU, and the steps that stream and repack them from the file."""

from math import prod

from pyweb.device import Device
from pyweb.errors import ModelFileError
from pyweb.models import Decoder, Matrix, Vector
from pyweb.plan.allocation import allocate_binding, largest_binding
from pyweb.plan.dispatch import Assembler, Binding
from pyweb.plan.packed import PackedMatrix, Slice, allocate_matrix
from pyweb.plan.repack import Piece, Step, load_steps, matrix_pieces, vector_piece
from pyweb.weights import GGUF, Layout, TensorInfo, common_layout, layout_of

__all__ = ["PackedMatrix", "Slice", "WeightPlan", "plan_weights"]

_VECTOR_KINDS = {"F32": 4, "F16": 2, "BF16": 2}


class WeightPlan:
    """Matrices and vectors by name, and the load steps that fill them."""

    def __init__(self):
        self.matrices: dict[str, PackedMatrix] = {}
        self.vectors: dict[str, Binding] = {}
        self.steps: list[int] = []
        self.scratch: list[int] = []  # buffers that only loading needs

    @property
    def bytes(self) -> int:
        """Bytes of all matrices on the GPU."""
        return sum(matrix.bytes for matrix in set(self.matrices.values()))


def _tensor(gguf: GGUF, name: str) -> TensorInfo:
    tensor = gguf.tensors.get(name)
    if tensor is None:
        raise ModelFileError(f"The model file has no tensor {name}.")
    if tensor.offset % 4:
        raise ModelFileError(f"The tensor {name} begins at byte {tensor.offset}, no multiple of 4.")
    return tensor


def _matrix_sources(gguf: GGUF, matrix: Matrix) -> tuple[list[TensorInfo], Layout]:
    """The tensors of a matrix, and the layout that holds them all."""
    tensors = [_tensor(gguf, name) for name in matrix.sources]
    for tensor in tensors:
        if len(tensor.shape) != 2 or tensor.shape[1] != matrix.columns:
            wanted = f"expected {matrix.columns} columns"
            raise ModelFileError(f"The tensor {tensor.name} has the shape {tensor.shape}, {wanted}.")
    rows = [tensor.shape[0] for tensor in tensors]
    if sum(rows) != matrix.rows or matrix.cut and len(set(rows)) > 1 or any(count % 2 for count in rows[:-1]):
        raise ModelFileError(f"The matrix {matrix.name} has {rows} rows, expected {matrix.rows}.")
    return tensors, common_layout(layout_of(tensor.kind, tensor.name) for tensor in tensors)


def _vector_sources(gguf: GGUF, vector: Vector) -> list[TensorInfo]:
    tensors = [_tensor(gguf, name) for name in vector.sources]
    for tensor in tensors:
        if tensor.kind not in _VECTOR_KINDS:
            raise ModelFileError(f"The vector {tensor.name} is {tensor.kind}, expected {' or '.join(_VECTOR_KINDS)}.")
    size = sum(prod(tensor.shape) for tensor in tensors)
    if size != vector.size:
        names = " and ".join(vector.sources)
        raise ModelFileError(f"The vector {vector.name} ({names}) has {size} values, expected {vector.size}.")
    return tensors


async def plan_weights(device: Device, assembler: Assembler, gguf: GGUF, decoder: Decoder) -> WeightPlan:
    """Allocates a model's weights and plans how they are streamed. What is wrong with the file shows before that.

    Raises:
        ModelFileError, UnknownModelError: the file lacks a tensor or has one in a type or shape we don't run.
        LimitError, GPUOutOfMemoryError: they don't fit.
    """
    tied = decoder.head.sources == decoder.embedding.sources
    wanted = [decoder.embedding, *([] if tied else [decoder.head])]
    wanted += [matrix for layer in decoder.matrices for matrix in layer.values()]
    vectors = [decoder.final_norm, *(vector for layer in decoder.vectors for vector in layer.values())]
    matrices = [(matrix, *_matrix_sources(gguf, matrix)) for matrix in wanted]
    sources = [(vector, _vector_sources(gguf, vector)) for vector in vectors]

    plan, pieces, steps = WeightPlan(), [], []
    for matrix, tensors, layout in matrices:
        packed = plan.matrices[matrix.name] = await allocate_matrix(device, matrix, layout)
        pieces += matrix_pieces(tensors, packed, matrix.cut, largest_binding(device))
    if tied:
        plan.matrices["head"] = plan.matrices["embedding"]
    for vector, tensors in sources:
        target = plan.vectors[vector.name] = await allocate_binding(device, vector.size * 4, vector.name)
        more, copied = _vector_parts(tensors, target)
        pieces += more
        steps += copied
    steps += await load_steps(device, assembler, pieces, plan.scratch)
    plan.steps = [number for step in sorted(steps) for number in step]
    return plan


def _vector_parts(tensors: list[TensorInfo], target: Binding) -> tuple[list[Piece], list[Step]]:
    """Pieces of the sources in 16 bits; steps of those in f32, which lie in the file as they do on the GPU."""
    pieces, steps, at = [], [], 0
    for tensor in tensors:
        if tensor.kind == "F32":
            steps.append((tensor.offset, tensor.nbytes, target.buffer, at * 4, 0))
        else:
            pieces.append(vector_piece(tensor, target, at))
        at += prod(tensor.shape)
    return pieces, steps
