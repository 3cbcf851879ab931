"""The programs of a loaded model, built when first needed."""

from dataclasses import replace

from pyweb.device import Device
from pyweb.kernels.tuning import Tuning
from pyweb.plan.dispatch import Assembler, Dispatch
from pyweb.plan.drafting import DraftPlan
from pyweb.plan.sampling import SamplingPlan, Stages
from pyweb.plan.step import StepPlan

__all__ = ["Programs"]

CALIBRATED_LENGTH = 1024  # positions that calibration's steps stay below


class Programs:
    """Programs by what they run and by the bound of their attention grid."""

    def __init__(self, device: Device, assembler: Assembler, plan: StepPlan):
        self._device, self._assembler, self._plan = device, assembler, plan
        self.sampling: SamplingPlan | None = None
        self.drafting: DraftPlan | None = None
        self._made: dict[tuple, list[int]] = {}

    def with_tuning(self, tuning: Tuning) -> "Programs":
        """Programs of the same model, weights and buffers with other cuts."""
        return Programs(self._device, self._assembler, replace(self._plan, tuning=tuning))

    async def prefill(self, width: int, length: int, head: str = "", layers: int | None = None) -> int:
        """A prefill chunk whose positions lie below `length`; length 0 only commits the last chunk.

        `head` adds "logits" of all nodes, or "likelihood" of the tokens behind them; `layers` runs only the first ones.
        """
        return (await self.prefill_pieces(1, width, length, head, layers))[0]

    async def prefill_pieces(
        self, count: int, width: int, length: int, head: str = "", layers: int | None = None
    ) -> list[int]:
        """A prefill chunk cut into `count` programs, which are submitted one after the other."""
        chunks = self._plan.chunks(length) if length else 0
        key = ("prefill", width, chunks, head, layers)
        return await self._pieces(count, key, self._prefill, width, chunks, head, layers)

    async def step(
        self, width: int, length: int, remembered: int | None = None, stages: Stages | None = None
    ) -> int:
        """A decode step whose positions lie below `length`; a window repeats it.

        `remembered` is the size of the drafter's memory, None leaves drafting out; `stages` are those of sampling, None
        chooses greedily.
        """
        return (await self.step_pieces(1, width, length, remembered, stages))[0]

    async def step_pieces(
        self, count: int, width: int, length: int, remembered: int | None = None, stages: Stages | None = None
    ) -> list[int]:
        """A decode step cut into `count` programs, which are submitted one after the other."""
        chunks = self._plan.chunks(length)
        key = ("step", width, chunks, remembered, stages)
        return await self._pieces(count, key, self._step, width, chunks, remembered, stages)

    async def first_draft(self, remembered: int) -> None:
        """Submits the drafting that precedes the first step."""
        self._device.submit(await self._program(("draft", remembered), self.drafting.dispatches, remembered))

    async def compile_drafting(self) -> None:
        """Compiles what all drafting needs."""
        dispatches = [*self.drafting.begin(), *self.drafting.dispatches(0)]
        await self._assembler.compile(dispatch.kernel for dispatch in dispatches)

    async def drafting_alone(self, remembered: int, times: int) -> int:
        """Drafting without a step, so many times."""
        key = ("drafting", remembered, times)
        return await self._program(key, lambda: self.drafting.dispatches(remembered) * times)

    async def calibration(self, width: int, drafting: bool = True) -> int:
        """A step of `width` nodes, all valid, that advances like a prefill and drafts like a decode step."""
        return await self._program(("calibration", width, drafting), self._calibration, width, drafting)

    async def once(self, dispatches: list[Dispatch]) -> None:
        """Submits dispatches that are run once a request."""
        if dispatches:
            self._device.submit(await self.of(dispatches))

    async def of(self, dispatches: list[Dispatch]) -> int:
        """A program of any dispatches."""
        return await self._program(tuple(dispatches), lambda: dispatches)

    async def _program(self, key: tuple, make, *args: object) -> int:
        return (await self._pieces(1, key, make, *args))[0]

    async def _pieces(self, count: int, key: tuple, make, *args: object) -> list[int]:
        if (key, count) not in self._made:
            dispatches = make(*args)
            size = -(-len(dispatches) // count)
            cut = [dispatches[first : first + size] for first in range(0, len(dispatches), size)]
            self._made[key, count] = [await self._assembler.program(piece) for piece in cut]
        return self._made[key, count]

    def _prefill(self, width: int, chunks: int, head: str, layers: int | None) -> list[Dispatch]:
        plan = self._plan
        out = [plan.prefill_step(width)]
        if chunks:
            out += plan.forward(width, chunks, layers)
        if head:
            out += plan.head(width)
        if head == "likelihood":
            out.append(plan.likelihood(width))
        return out

    def _step(self, width: int, chunks: int, remembered: int | None, stages: Stages | None) -> list[Dispatch]:
        plan, sampling = self._plan, self.sampling
        step = [*plan.forward(width, chunks), *plan.head(width)]
        if stages is None:
            step += plan.choose(width)
        else:
            step += [*sampling.dispatches(width, stages), plan.accept(width, sampling.segments)]
        if remembered is not None:
            step += self.drafting.dispatches(remembered)
        return step

    def _calibration(self, width: int, drafting: bool) -> list[Dispatch]:
        plan = self._plan
        step = [plan.prefill_step(width), *plan.forward(width, plan.chunks(CALIBRATED_LENGTH)), *plan.head(width)]
        return [*step, plan.choose(width)[0], *(self.drafting.dispatches(0) if drafting else [])]
