"""Dispatches as data, and the assembler that turns lists of them into programs on a device."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pyweb.device import Device
from pyweb.errors import LimitError
from pyweb.kernels.compose import compose

__all__ = ["Assembler", "Binding", "Dispatch", "Kernel"]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel role with its numbers: `values` are sorted (name, value) pairs. Equal ones are the same object, since a
    program looks hundreds of them up."""

    role: str
    values: tuple[tuple[str, object], ...]

    @classmethod
    def of(cls, role: str, **values: object) -> "Kernel":
        return _kernel(role, tuple(sorted(values.items())))


@cache
def _kernel(role: str, values: tuple[tuple[str, object], ...]) -> Kernel:
    return Kernel(role, values)


class Binding(NamedTuple):
    """A range of a buffer."""

    buffer: int
    size: int
    offset: int = 0


@dataclass(frozen=True)
class Dispatch:
    """One kernel over one grid of workgroups."""

    kernel: Kernel
    bindings: tuple[Binding, ...]
    grid: tuple[int, int, int]


class Assembler:
    """Compiles each kernel once, binds each combination once, and makes programs of dispatch lists."""

    def __init__(self, device: Device):
        self._device = device
        self._pipelines: dict[Kernel, int] = {}
        self._compiling: dict[Kernel, asyncio.Future] = {}
        self._groups: dict[tuple[Kernel, tuple[Binding, ...]], int] = {}

    async def compile(self, kernels: Iterable[Kernel]) -> None:
        """Composes and compiles those kernels that aren't yet.

        Raises:
            LimitError, ShaderError: see `pyweb.kernels.compose`.
        """
        wanted = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._pipelines]
        missing = [kernel for kernel in wanted if kernel not in self._compiling]
        if missing:
            task = asyncio.ensure_future(self._compile(missing))
            self._compiling |= dict.fromkeys(missing, task)
        for task in {self._compiling[kernel] for kernel in wanted}:
            await task

    async def _compile(self, kernels: Sequence[Kernel]) -> None:
        try:
            shaders = [compose(kernel.role, dict(kernel.values), self._device.limits) for kernel in kernels]
            handles = await self._device.compile([(shader.label, shader.code) for shader in shaders])
            self._pipelines.update(zip(kernels, handles, strict=True))
        finally:
            for kernel in kernels:
                del self._compiling[kernel]

    def commands(self, dispatches: Sequence[Dispatch]) -> list[int]:
        """Program text of dispatches whose kernels are compiled.

        Raises:
            LimitError: a grid or a binding exceeds what the device grants.
        """
        out: list[int] = []
        for dispatch in dispatches:
            key = (dispatch.kernel, dispatch.bindings)
            if key not in self._groups:
                self._groups[key] = self._bind(dispatch)
            self._check_grid(dispatch)
            out += (self._pipelines[dispatch.kernel], self._groups[key], *dispatch.grid)
        return out

    async def program(self, dispatches: Sequence[Dispatch]) -> int:
        """A program on the device; compiles what it needs."""
        await self.compile(dispatch.kernel for dispatch in dispatches)
        return self._device.program(self.commands(dispatches))

    def _bind(self, dispatch: Dispatch) -> int:
        limit = self._device.limits["maxStorageBufferBindingSize"]
        triples: list[int] = []
        for binding in dispatch.bindings:
            if binding.size > limit:
                raise LimitError(
                    f"Kernel {dispatch.kernel.role} binds {binding.size} bytes, "
                    f"maxStorageBufferBindingSize is {limit}."
                )
            triples += (binding.buffer, binding.offset, binding.size)
        return self._device.bind(self._pipelines[dispatch.kernel], triples)

    def _check_grid(self, dispatch: Dispatch) -> None:
        limit = self._device.limits["maxComputeWorkgroupsPerDimension"]
        if max(dispatch.grid) > limit:
            raise LimitError(
                f"Kernel {dispatch.kernel.role} asks a grid of {dispatch.grid}, "
                f"maxComputeWorkgroupsPerDimension is {limit}."
            )
