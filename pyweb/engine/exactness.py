"""Compares steps of several widths with single steps, bit for bit, on the device at hand."""

from collections.abc import Callable, Sequence

from pyweb.device import Device
from pyweb.engine.programs import Programs
from pyweb.kernels.tuning import WIDTHS
from pyweb.plan.step import StepPlan

__all__ = ["Exactness"]

# One full step of the widest width on a GPU; a software adapter takes a tenth of a second for a whole step, so there
# the cache of the first layers stands for all.
_TOKENS, _SOFTWARE_TOKENS, _SOFTWARE_LAYERS = 34, 10, 2

Begin = Callable[[Sequence[int]], None]


class Exactness:
    """What is known of the widths: `widths` that may run, and a warning where one may not.

    Args:
        begin: writes a prompt and resets the cache.
    """

    def __init__(self, device: Device, plan: StepPlan, programs: Programs, begin: Begin):
        self._device, self._plan, self._programs, self._begin = device, plan, programs, begin
        self._equal: dict[int, bool] = {1: True}
        self._single: tuple | None = None

    @property
    def warning(self) -> str:
        """A sentence for the visitor where a check failed, else empty."""
        failed = [str(width) for width, equal in self._equal.items() if not equal]
        if not failed:
            return ""
        return (
            f"On this device steps of {', '.join(failed)} tokens don't give the bits of single steps, "
            "so pyweb runs one token at a time, which is slower."
        )

    async def allowed(self, widths: Sequence[int]) -> tuple[int, ...]:
        """Those of `widths` that may run: all, once each is checked, or width 1 alone where one differs."""
        for width in widths:
            if width not in self._equal:
                await self._check(width)
        return tuple(widths) if all(self._equal.values()) else (1,)

    async def _check(self, width: int) -> None:
        """A chain of tokens in steps of `width` against single steps."""
        software = self._plan.tuning.barrier_free
        layers, count = (_SOFTWARE_LAYERS, _SOFTWARE_TOKENS) if software else (None, _TOKENS)
        ids = [1 + i * 7919 % (self._plan.decoder.vocabulary - 1) for i in range(count)]
        if self._single is None:
            self._single = await self.trace(ids, 1, layers)
        self._equal[width] = await self.trace(ids, width, layers) == self._single

    async def compare(self, ids: Sequence[int], widths: Sequence[int] = WIDTHS) -> dict[int, bool]:
        """Whether the whole model gives `ids` the same logits and cache in steps of each width as in single ones."""
        single = await self.trace(ids, 1)
        return {width: await self.trace(ids, width) == single for width in widths if width > 1}

    async def trace(self, ids: Sequence[int], width: int, layers: int | None = None) -> tuple[list[bytes], list[bytes]]:
        """Logits of every position but the last and the cache of every layer, for `ids` in steps of `width`.

        With `layers`, only the cache of so many.
        """
        self._begin(ids)
        plan = self._plan
        row, logits, count = plan.decoder.vocabulary * 4, [], len(ids) - 1
        for first in range(0, count, width):
            nodes = min(width, count - first)
            program = await self._programs.prefill(width, first + width, "" if layers else "logits", layers)
            wanted = () if layers else (plan.buffers.logits.buffer, 0, nodes * row)
            ticket = self._device.submit(program, 1, wanted)
            data = await self._device.collect(ticket)
            logits += [data[i * row : (i + 1) * row] for i in range(nodes)]
        return logits, [await self._committed(layer, count) for layer in range(layers or plan.decoder.layers)]

    async def _committed(self, layer: int, count: int) -> bytes:
        """Keys and values of the first `count` positions of a layer, which no draft has moved."""
        buffers, decoder = self._plan.buffers, self._plan.decoder
        run = buffers.slots * decoder.head_size * (2 if buffers.kv_f16 else 4)
        size = count * run // buffers.slots
        kv = buffers.kv[layer].buffer
        readbacks = [number for head in range(2 * decoder.kv_heads) for number in (kv, head * run, size)]
        return await self._device.collect(self._device.submit(0, 1, readbacks))
