"""A device that remembers what it was asked and computes nothing."""

from collections.abc import Sequence

from pyweb.errors import LimitError

__all__ = ["DEFAULT_LIMITS", "FakeDevice"]

# What WebGPU grants every page: https://www.w3.org/TR/webgpu/#limits
DEFAULT_LIMITS = {
    "maxBufferSize": 268435456,
    "maxStorageBufferBindingSize": 134217728,
    "maxStorageBuffersPerShaderStage": 8,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupsPerDimension": 65535,
}


class FakeDevice:
    """`pyweb.device.Device` without a GPU; `collect` answers with `answers` in turn, then with nothing."""

    def __init__(self, **limits: int):
        self.info: dict[str, object] = {}
        self.features: frozenset[str] = frozenset()
        self.limits = DEFAULT_LIMITS | limits
        self.buffers: dict[int, int] = {}
        self.shaders: list[tuple[str, str]] = []
        self.bound: list[tuple[int, tuple[int, ...]]] = []
        self.programs: dict[int, list[int]] = {}
        self.writes: list[tuple[int, int, bytes]] = []
        self.submitted: list[tuple[int, int, tuple[int, ...]]] = []
        self.answers: list[bytes] = []
        self._handles = 0

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    async def buffer(self, size: int, label: str = "") -> int:
        handle = self._handle()
        self.buffers[handle] = size
        return handle

    def write(self, buffer: int, offset: int, data: bytes) -> None:
        assert offset + len(data) <= self.buffers[buffer]
        self.writes.append((buffer, offset, bytes(data)))

    def destroy(self, buffer: int) -> None:
        del self.buffers[buffer]

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        self.shaders += shaders
        return [self._handle() for _ in shaders]

    def bind(self, pipeline: int, bindings: Sequence[int]) -> int:
        for buffer, offset, size in zip(bindings[::3], bindings[1::3], bindings[2::3], strict=True):
            assert offset + size <= self.buffers[buffer]
        self.bound.append((pipeline, tuple(bindings)))
        return self._handle()

    def program(self, commands: Sequence[int]) -> int:
        handle = self._handle()
        self.programs[handle] = list(commands)
        return handle

    def submit(self, program: int, repeats: int = 1, readbacks: Sequence[int] = ()) -> int:
        self.submitted.append((program, repeats, tuple(readbacks)))
        return self._handle()

    async def collect(self, ticket: int) -> bytes:
        return self.answers.pop(0) if self.answers else b""

    async def time(self, program: int, repeats: int = 1) -> float:
        raise LimitError("This device has no timestamp queries.")

    async def load(self, source, steps, on_progress, signal=None) -> None:
        on_progress(source.size, source.size)

    def counters(self) -> dict[str, int]:
        return {"submits": len(self.submitted), "maps": 0, "dispatches": 0, "encode_ms": 0.0, "wait_ms": 0.0}

    def close(self) -> None:
        pass
