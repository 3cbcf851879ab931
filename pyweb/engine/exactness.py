"""Compares steps of several widths with single steps, bit for bit, on the device at hand."""

import asyncio
from collections.abc import Callable, Sequence

from pyweb.device import Device
from pyweb.engine.programs import Programs
from pyweb.kernels.tuning import WIDTHS
from pyweb.plan.step import StepPlan

__all__ = ["Exactness"]

# One full step of the widest width on a GPU, and the logits of its first and last node; a software adapter takes a
# tenth of a second for a whole step, so there the cache of the first layers stands for all.
_TOKENS, _SOFTWARE_TOKENS, _SOFTWARE_LAYERS = 34, 10, 2
_POSITIONS = (0, 31)

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
        missing = [width for width in widths if width not in self._equal]
        if missing:
            await self._check(missing)
        return tuple(widths) if all(self._equal.values()) else (1,)

    @property
    def _scope(self) -> tuple[int | None, int]:
        """Layers that a check compares, None for all with the head; and its tokens."""
        return (_SOFTWARE_LAYERS, _SOFTWARE_TOKENS) if self._plan.tuning.barrier_free else (None, _TOKENS)

    async def _check(self, widths: Sequence[int]) -> None:
        """A chain of tokens in steps of each width against single steps: all are compiled side by side, each is
        submitted when it is, and none is awaited before."""
        layers, count = self._scope
        ids = self._plan.decoder.varied_ids(count)
        wanted = (1, *widths) if self._single is None else widths
        submitted = (self._submit(ids, width, layers, _POSITIONS) for width in wanted)
        traces = await asyncio.gather(*submitted, return_exceptions=True)  # so that what failed leaves nothing behind
        failed = next((trace for trace in traces if isinstance(trace, BaseException)), None)
        found = {
            width: await self._collect(trace)
            for width, trace in zip(wanted, traces, strict=True)
            if not isinstance(trace, BaseException)
        }
        if failed is not None:
            raise failed
        self._single = self._single or found[1]
        self._equal |= {width: found[width] == self._single for width in widths}

    async def compare(self, ids: Sequence[int], widths: Sequence[int] = WIDTHS) -> dict[int, bool]:
        """Whether the whole model gives `ids` the same logits and cache in steps of each width as in single ones."""
        single = await self.trace(ids, 1)
        return {width: await self.trace(ids, width) == single for width in widths if width > 1}

    async def trace(self, ids: Sequence[int], width: int) -> tuple[list[bytes], list[bytes]]:
        """Logits of every position but the last and the cache of every layer, for `ids` in steps of `width`."""
        return await self._collect(await self._submit(ids, width))

    async def _submit(
        self, ids: Sequence[int], width: int, layers: int | None = None, positions: Sequence[int] | None = None
    ) -> tuple[list[int], int, int]:
        """A trace under way: tickets of its logits, the ticket of its cache and the bytes of one layer there.

        With `layers`, only the cache of so many; with `positions`, only the logits of those.
        """
        plan = self._plan
        row, tickets, count = plan.decoder.vocabulary * 4, [], len(ids) - 1
        kind = "" if layers else "logits"
        program = await self._programs.prefill(width, -(-count // width) * width, kind, layers)
        self._begin(ids)  # from here on nothing is awaited: another trace must not come between
        for first in range(0, count, width):
            nodes = min(width, count - first)
            wanted = [i for i in range(nodes) if not layers and (positions is None or first + i in positions)]
            readbacks = [number for i in wanted for number in (plan.buffers.logits.buffer, i * row, row)]
            tickets.append(self._device.submit(program, 1, readbacks))
        return tickets, *self._committed(layers or plan.decoder.layers, count)

    async def _collect(self, trace: tuple[list[int], int, int]) -> tuple[list[bytes], list[bytes]]:
        tickets, cache, layer = trace
        logits = [await self._device.collect(ticket) for ticket in tickets]
        row = self._plan.decoder.vocabulary * 4
        rows = [data[at : at + row] for data in logits for at in range(0, len(data), row)]
        data = await self._device.collect(cache)
        return rows, [data[at : at + layer] for at in range(0, len(data), layer)]

    def _committed(self, layers: int, count: int) -> tuple[int, int]:
        """Ticket of the first `count` keys and values, which no draft has moved, and the bytes of a layer."""
        buffers, decoder = self._plan.buffers, self._plan.decoder
        run = buffers.slots * decoder.head_size * (2 if buffers.kv_f16 else 4)
        size, heads = count * run // buffers.slots, range(2 * decoder.kv_heads)
        kv = [binding.buffer for binding in buffers.kv[:layers]]
        readbacks = [number for buffer in kv for head in heads for number in (buffer, head * run, size)]
        return self._device.submit(0, 1, readbacks), size * len(heads)
