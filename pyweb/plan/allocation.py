"""Buffers that can be bound whole."""

from pyweb.device import Device
from pyweb.errors import LimitError
from pyweb.plan.dispatch import Binding

__all__ = ["allocate_binding", "largest_binding"]


def largest_binding(device: Device) -> int:
    """Bytes of the largest buffer that a kernel can bind whole, a multiple of 4."""
    return min(device.limits["maxBufferSize"], device.limits["maxStorageBufferBindingSize"]) // 4 * 4


async def allocate_binding(device: Device, size: int, label: str) -> Binding:
    """A zeroed buffer of `size` bytes, bound whole.

    Raises:
        LimitError: it is larger than a buffer or a binding may be here.
        GPUOutOfMemoryError: it doesn't fit.
    """
    if size > largest_binding(device):
        raise LimitError(f"The buffer {label} takes {size} bytes, the device binds {largest_binding(device)} at most.")
    return Binding(await device.buffer(size, label), size)
