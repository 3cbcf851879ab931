"""How a model is loaded, and loaded again when the GPU was lost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pyweb.device import Device, Source
from pyweb.engine import Engine
from pyweb.weights import GGUF, read_gguf

__all__ = ["Opening", "Progress", "no_progress"]

Progress = Callable[[str, int, int], None]
"""Stage ("model" in bytes, "kernels", "prefill" in tokens), done, total."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Reports to nobody."""


@dataclass(frozen=True)
class Opening:
    """Where a model comes from and how its engine is made."""

    open_device: Callable[[], Awaitable[Device]]
    open_source: Callable[[], Awaitable[Source]]
    context: int | None
    kv: str
    before_tables: Callable[[], Awaitable[None]] | None

    async def run(self, on_header: Callable[[GGUF], None], on_progress: Progress, signal: object = None) -> Engine:
        """Opens device and source, loads the engine and compiles what a first question needs."""
        device = await self.open_device()
        try:
            source = await self.open_source()
            try:
                gguf = await read_gguf(source.read, source.size)
                on_header(gguf)
                engine = await Engine.load(
                    device,
                    source,
                    gguf,
                    context=self.context,
                    kv_f16=self.kv == "f16",
                    on_progress=lambda done, total: on_progress("model", done, total),
                    before_tables=self.before_tables,
                    signal=signal,
                )
            finally:
                source.close()
            on_progress("kernels", 0, 1)
            await engine.compile()
            on_progress("kernels", 1, 1)
            return engine
        except BaseException:
            device.close()
            raise
