"""A matrix on the GPU: one range of rows, or several where it is larger than a binding may be."""

from dataclasses import dataclass

from pyweb.device import Device
from pyweb.errors import LimitError
from pyweb.models import Matrix
from pyweb.plan.allocation import allocate_binding, largest_binding
from pyweb.plan.dispatch import Binding
from pyweb.weights import Layout

__all__ = ["PackedMatrix", "Slice", "allocate_matrix"]

_TOGETHER = 32  # rows that stay together: outputs of `gate_up` are quantized in blocks


@dataclass(frozen=True)
class Slice:
    """Rows `first` .. `first + rows` of each source of a matrix, or all rows of one that can't be cut."""

    first: int
    rows: int
    codes: Binding
    scales: Binding


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix of shape (rows, columns) in a runtime layout."""

    layout: Layout
    rows: int
    columns: int
    slices: tuple[Slice, ...]

    @property
    def bytes(self) -> int:
        return sum(part.codes.size + part.scales.size for part in self.slices)


def _ranges(matrix: Matrix, layout: Layout, limit: int) -> list[tuple[int, int]]:
    """(first, rows) of the slices whose codes take at most `limit` bytes; scales never take more."""
    stacked = len(matrix.sources) if matrix.cut else 1
    rows = matrix.rows // stacked
    fitting = limit // (stacked * matrix.columns // 32 * layout.code_bytes)
    if fitting >= rows:
        return [(0, rows)]
    step = fitting // _TOGETHER * _TOGETHER
    if not matrix.cut or not step:
        raise LimitError(f"The matrix {matrix.name} has {rows} rows, the device binds {fitting} of them at most.")
    return [(first, min(step, rows - first)) for first in range(0, rows, step)]


async def allocate_matrix(device: Device, matrix: Matrix, layout: Layout) -> PackedMatrix:
    """Room for a matrix.

    Raises:
        LimitError: a matrix that must stay whole is larger than a binding.
        GPUOutOfMemoryError: it doesn't fit.
    """
    slices = []
    for first, rows in _ranges(matrix, layout, largest_binding(device)):
        blocks = rows * matrix.columns // 32 * (len(matrix.sources) if matrix.cut else 1)
        label = matrix.name if not first else f"{matrix.name} from row {first}"
        codes = await allocate_binding(device, blocks * layout.code_bytes, f"{label} codes")
        scales = await allocate_binding(device, -(-blocks * layout.scale_bytes // 4) * 4, f"{label} scales")
        slices.append(Slice(first, rows, codes, scales))
    return PackedMatrix(layout, matrix.rows, matrix.columns, tuple(slices))
