"""A loaded model: prefill, the windowed decoding loop, perplexity and the width check."""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter

from pyweb.device import Device, Source
from pyweb.engine.calibration import (
    REPEATS,
    SAMPLES,
    SOFTWARE_WIDTHS,
    Calibration,
    calibrate_costs,
    calibrate_window,
    measure_drafting,
    warm_up,
)
from pyweb.engine.decode import Decoding, Generation, Watch
from pyweb.engine.exactness import Exactness
from pyweb.engine.modes import FixedWidth, Mode, Steering, parse_mode
from pyweb.engine.pacing import Pacer
from pyweb.engine.prefill import Prefilling
from pyweb.engine.programs import Programs
from pyweb.engine.suggestions import SUGGESTED_TOKENS, Suggestions
from pyweb.errors import PromptTooLongError, StoppedError, UsageError
from pyweb.kernels.tuning import WIDTHS, Tuning, choose_tuning
from pyweb.models import Decoder, decoder_of
from pyweb.plan.buffers import Buffers, allocate, identity_order, rope_table
from pyweb.plan.control import MAX_NODES, READBACK_BYTES, STATE, initial_state, request_bytes
from pyweb.plan.dispatch import Assembler
from pyweb.plan.drafting import DraftPlan
from pyweb.plan.sampling import Sampling, SamplingPlan
from pyweb.plan.step import StepPlan
from pyweb.plan.weights import plan_weights
from pyweb.speculation.bounds import BLOCK, MEMORY_COMMON, TRUST
from pyweb.speculation.common import most_common
from pyweb.speculation.controller import Controller
from pyweb.speculation.costs import Costs
from pyweb.speculation.drafter import Drafter
from pyweb.speculation.memory import MEMORY_TOKENS
from pyweb.weights import GGUF

__all__ = ["DEFAULT_CONTEXT", "Engine"]

DEFAULT_CONTEXT = 4096
GREEDY = Sampling()
_PREFILL_WIDTH = 32
# Chunks in flight: on a fast GPU one takes less time than the way to it and back, on a software adapter seconds.
_PREFILL_DEPTH, _SOFTWARE_PREFILL_DEPTH = 4, 2

Report = Callable[[int, int], None]


def _ignore(done: int, total: int) -> None:
    pass


class Engine:
    """One model on one device. Not reentrant: one request at a time."""

    def __init__(self, device: Device, decoder: Decoder, plan: StepPlan, programs: Programs):
        self.device, self.decoder, self._plan, self._programs = device, decoder, plan, programs
        self._buffers: Buffers = plan.buffers
        self.calibration: Calibration | None = None
        self._controller: Controller | None = None
        self._controlled: tuple | None = None  # the calibration and widths that the controller began with
        self._exactness = Exactness(device, plan, programs, self._begin_trace)
        self._cached: list[int] = []  # tokens whose keys and values lie in the cache

    @classmethod
    async def load(
        cls,
        device: Device,
        source: Source,
        gguf: GGUF,
        *,
        context: int | None = None,
        kv_f16: bool = True,
        tuning: Tuning | None = None,
        on_progress: Report = _ignore,
        before_tables: Callable | None = None,
        signal: object = None,
    ) -> "Engine":
        """Streams a model's weights to the GPU.

        Args:
            context: tokens of prompt and reply together; 4,096 or the model's own where less.
            kv_f16: keep keys and values as f16, else f32.
            before_tables: awaited when numpy is needed for the first time.

        Raises:
            ModelFileError, UnknownModelError, GPUOutOfMemoryError, NetworkError, IntegrityError, StoppedError.
        """
        decoder = decoder_of(gguf)
        tuning = (tuning or choose_tuning(device.info)).within(device.limits)
        context = min(context or DEFAULT_CONTEXT, decoder.context)
        assembler = Assembler(device)
        weights = await plan_weights(device, assembler, gguf, decoder)
        buffers = await allocate(device, decoder, tuning, context, kv_f16)
        await device.load(source, weights.steps, on_progress, signal)
        for buffer in weights.scratch:
            device.destroy(buffer)
        if before_tables:
            await before_tables()
        device.write(buffers.rope.buffer, 0, rope_table(decoder, buffers.slots))
        plan = StepPlan(decoder, tuning, weights, buffers)
        return cls(device, decoder, plan, Programs(device, assembler, plan))

    async def compile(self) -> None:
        """Compiles what a first question needs and checks the width of prefill, so that it doesn't wait for that."""
        await asyncio.gather(
            self._prefill_width(),
            self._programs.prefill(_PREFILL_WIDTH, _PREFILL_WIDTH),
            self._programs.step(1, 1),
            self._compile_drafting(),
        )

    async def _compile_drafting(self) -> None:
        await self._allocate_drafting()
        await self._programs.compile_drafting()

    async def _prefill_width(self) -> int:
        return (await self._exactness.allowed((_PREFILL_WIDTH,)))[0]

    @property
    def context(self) -> int:
        """Tokens of prompt and reply that fit."""
        return self._buffers.slots - 32

    @property
    def tuning(self) -> Tuning:
        return self._plan.tuning

    @property
    def gpu_bytes(self) -> dict[str, int]:
        """Bytes on the GPU of weights and KV cache."""
        return {"weights": self._plan.weights.bytes, "kv_cache": self._buffers.kv_bytes}

    async def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int = 512,
        stops: Sequence[int] = (),
        mode: str = "loop",
        window: int | None = None,
        sampling: Sampling = GREEDY,
        remembered: Sequence[int] = (),
        drafter: Drafter | None = None,
        reuse: bool = True,
        on_tokens: Callable[[list[int]], int | None] = lambda ids: None,
        watch: Watch | None = None,
        on_prefill: Report = _ignore,
        stopped: Callable[[], bool] = lambda: False,
        pacer: Pacer | None = None,
    ) -> Generation:
        """Decodes a reply to `prompt`. Its ids don't depend on mode, window, memory or what is in the cache.

        Args:
            mode: see `parse_mode`.
            window: steps of a window; where left out 4, or what was measured in "adaptive".
            stops: token ids that end the reply; they are not part of it.
            sampling: how tokens are chosen; the same seed gives the same ids in every mode.
            remembered: tokens of earlier replies, for the drafter alone; the last 32,768 count.
            drafter: one of the caller's own, whose trees join the GPU's candidates from window to window.
            reuse: take what prompt and KV cache have in common at their beginning from the cache.
            on_tokens: called with new ids as they arrive. A number that it returns ends the reply after so many ids,
                with finish_reason "stop".
            watch: see `Decoding`; makes every window one step long.
            stopped: asked between windows; True ends the reply with finish_reason "cancelled".
            pacer: says how much of the GPU the reply may take; all of it where left out.

        Raises:
            PromptTooLongError: the prompt leaves no room for a reply.
            UsageError: an option that makes no sense.
        """
        driven = parse_mode(mode, window)
        self._check_request(prompt, max_tokens)
        pacer = pacer or Pacer()
        pacer.begin()
        remembered = remembered[-MEMORY_TOKENS:]
        steering = await self._steering(driven)
        prefill_width = await self._prefill_width()
        start = perf_counter()
        reused = self._common(prompt) if reuse else 0
        self._begin(prompt, max_tokens, stops, reused)
        await self._begin_sampling(sampling)
        suggestions = await self._begin_drafting(remembered, drafter, prompt) if driven.drafts else None
        await self._prefill(prompt, prefill_width, on_prefill, stopped, pacer, start=reused)
        # Programs are kept by this bound: memories that grow by a reply share theirs.
        bound = -(-(len(remembered) + (SUGGESTED_TOKENS if suggestions else 0)) // BLOCK) * BLOCK
        if driven.drafts:
            await self._programs.first_draft(bound)
        result = Generation(mode=mode, reused=reused, prefill_time=perf_counter() - start)
        decoding = Decoding(
            device=self.device,
            programs=self._programs,
            control=self._buffers.control.buffer,
            mode=driven,
            window=1 if watch else driven.window or self.calibration.window,
            steering=steering,
            prompt_length=len(prompt),
            context=self.context,
            stops=stops,
            remembered=bound if driven.drafts else None,
            stages=None if sampling.greedy else sampling.stages,
            watch=watch,
            suggestions=suggestions,
            pacer=pacer,
        )
        await decoding.run(result, on_tokens, stopped)
        result.paused, result.least_share = pacer.paused, pacer.least_share
        # The last token's keys and values would be computed by the next step; a cancelled reply went on behind these.
        self._cached = [*prompt, *decoding.emitted][:-1]
        await asyncio.sleep(0)  # whoever waits for the reply goes on in a turn of its own, not in the device's call
        return result

    async def calibrate(self) -> Calibration:
        """Measures what steps cost on this device, unless `calibration` is known already; "adaptive" needs it."""
        if self.calibration is None:
            software = self.tuning.barrier_free
            widths = await self._exactness.allowed(SOFTWARE_WIDTHS if software else WIDTHS)
            await self._begin_drafting(())
            samples, repeats, measured = (1, 1, widths) if software else (SAMPLES, REPEATS, (*widths, widths[0]))
            if not software:
                await warm_up(self.device, self._programs, self._begin_calibration)
            costs = await calibrate_costs(
                self.device, self._programs, self._begin_calibration, measured, samples=samples, repeats=repeats
            )
            window = 1  # a software adapter's step is so long that no window saves anything
            if not software:
                readback = (self._buffers.control.buffer, STATE, READBACK_BYTES)
                window = await calibrate_window(self.device, self._programs, self._begin_calibration, readback)
            self.calibration = Calibration(costs, window)
        return self.calibration

    async def prepare(self, mode: str) -> None:
        """Compiles, checks and measures what a mode needs before its first reply.

        Raises:
            UsageError: no such mode.
        """
        await self._steering(parse_mode(mode))

    def forget(self) -> None:
        """Erases what the drafter remembers on the GPU."""
        if self._programs.drafting is not None:
            for buffer, offset, data in self._programs.drafting.erased():
                self.device.write(buffer, offset, data)
            # The last tree was drafted from it too.
            self.device.write(self._buffers.control.buffer, 0, bytes(STATE))

    async def draft_costs(self, sizes: Sequence[int] = (0, 8192, 16384, MEMORY_TOKENS)) -> dict[int, float]:
        """Milliseconds that drafting adds to a step, by the memory's tokens, behind a prompt of 512 tokens."""
        return await measure_drafting(self.device, self._programs, self._begin_draft_costs, sizes)

    async def _begin_draft_costs(self, size: int) -> None:
        words = [1 + i * i % 997 for i in range(max(size, 512))]
        self._begin(words[: min(512, self.context - 1)], 1, ())
        await self._begin_drafting([word % self.decoder.vocabulary for word in words[:size]])

    @property
    def plan(self) -> StepPlan:
        """What steps consist of, for measurements."""
        return self._plan

    @property
    def programs(self) -> Programs:
        """The model's programs, for measurements."""
        return self._programs

    async def begin_measurement(self, committed: int = 0) -> int:
        """Writes a prompt whose first `committed` tokens count as prefilled, and an empty memory, for
        `Programs.calibration`. The prompt's tokens."""
        await self._begin_drafting(())
        prompt = self._calibration_prompt()
        self._begin(prompt, 1, (), min(committed, len(prompt) - 1))
        return len(prompt)

    def _begin_calibration(self) -> None:
        self._begin(self._calibration_prompt(), 1, ())

    def _calibration_prompt(self) -> list[int]:
        count = min(self.context - 1, (SAMPLES + 1) * REPEATS * MAX_NODES + 1)
        return self.decoder.varied_ids(count)

    async def _steering(self, mode: Mode) -> Steering:
        """What chooses the widths of a reply, among those that are exact on this device."""
        if mode.width is not None:
            return FixedWidth(max(width for width in await self._exactness.allowed((mode.width,))))
        calibration = await self.calibrate()
        widths = await self._exactness.allowed(tuple(calibration.costs))
        if self._controlled != (calibration, widths):
            self._controller, self._controlled = Controller(Costs(calibration.costs), widths), (calibration, widths)
        return self._controller

    async def perplexity_sum(self, ids: Sequence[int], on_progress: Report = _ignore) -> float:
        """Sum of the negative log-likelihoods of tokens 2 to the last, in nats."""
        import struct

        if not 2 <= len(ids) <= self.context:
            raise UsageError(f"Perplexity needs 2 to {self.context} tokens, not {len(ids)}.")
        prefill_width = await self._prefill_width()
        self._begin(ids, 1, ())
        await self._prefill(ids, prefill_width, on_progress, lambda: False, Pacer(), "likelihood")
        size = (len(ids) - 1) * 4
        data = await self.device.collect(self.device.submit(0, 1, (self._buffers.nll.buffer, 0, size)))
        return sum(struct.unpack(f"<{len(ids) - 1}f", data))

    async def trace(self, ids: Sequence[int], width: int) -> tuple[list[bytes], list[bytes]]:
        """Logits of every position but the last and the KV cache of every layer, for `ids` in steps of `width`."""
        return await self._exactness.trace(ids, width)

    async def compare(self, ids: Sequence[int], widths: Sequence[int]) -> dict[int, bool]:
        """Whether steps of each width give the bits of single steps: logits and KV cache of the whole model."""
        return await self._exactness.compare(ids, widths)

    @property
    def warning(self) -> str:
        """A sentence for the visitor where this device fails the width check, else empty."""
        return self._exactness.warning

    def _check_request(self, prompt: Sequence[int], max_tokens: int) -> None:
        if max_tokens < 1:
            raise UsageError(f"A reply has at least one token, not {max_tokens}.")
        if not prompt:
            raise UsageError("The prompt is empty.")
        if min(prompt) < 0 or max(prompt) >= self.decoder.vocabulary:
            raise UsageError(f"The prompt has token ids beyond the model's {self.decoder.vocabulary}.")
        if len(prompt) >= self.context:
            raise PromptTooLongError(f"The prompt has {len(prompt)} tokens, the context holds {self.context}.")

    def _common(self, prompt: Sequence[int]) -> int:
        """Tokens at the prompt's beginning that are in the cache; never all, since the last one is the first step's."""
        pairs = enumerate(zip(prompt[:-1], self._cached, strict=False))
        return next((i for i, (one, other) in pairs if one != other), min(len(prompt) - 1, len(self._cached)))

    def _begin(self, prompt: Sequence[int], max_tokens: int, stops: Sequence[int], reused: int = 0) -> None:
        b = self._buffers
        self._cached = []
        ids = b"".join(int(token).to_bytes(4, "little") for token in prompt)
        self.device.write(b.context.buffer, 0, ids)
        self.device.write(b.request.buffer, 0, request_bytes(max_tokens, self.context, len(prompt), stops))
        self.device.write(b.control.buffer, STATE, initial_state(reused, len(prompt)))

    def _begin_trace(self, ids: Sequence[int]) -> None:
        """A prompt whose keys and values will lie in the cache in order."""
        self._begin(ids, 1, ())
        self.device.write(self._buffers.order.buffer, 0, identity_order(self._buffers.slots))

    async def _begin_drafting(
        self, remembered: Sequence[int], drafter: Drafter | None = None, prompt: Sequence[int] = ()
    ) -> Suggestions | None:
        await self._allocate_drafting()
        plan, common = self._programs.drafting, most_common(remembered, MEMORY_COMMON)
        room = SUGGESTED_TOKENS if drafter else 0
        for buffer, offset, data in plan.writes(remembered, common, room):
            self.device.write(buffer, offset, data)
        await self._programs.once(plan.begin())
        if drafter is None:
            return None
        return Suggestions(self.device, plan.memory.buffer, 4 * len(remembered), drafter, prompt)

    async def _allocate_drafting(self) -> None:
        if self._programs.drafting is None:
            room = MEMORY_TOKENS + SUGGESTED_TOKENS
            plan = await DraftPlan.allocate(self.device, self.decoder.vocabulary, self._buffers, room, TRUST)
            self._programs.drafting = plan

    async def _begin_sampling(self, sampling: Sampling) -> None:
        if sampling.greedy:
            return
        if self._programs.sampling is None:
            plan = await SamplingPlan.allocate(self.device, self.decoder, self.tuning, self._buffers)
            self._programs.sampling = plan
        for buffer, offset, data in self._programs.sampling.writes(sampling):
            self.device.write(buffer, offset, data)
        await self._programs.once(self._programs.sampling.begin(sampling))

    async def _prefill(
        self,
        prompt: Sequence[int],
        width: int,
        on_progress: Report,
        stopped: Callable[[], bool],
        pacer: Pacer,
        head: str = "",
        start: int = 0,
    ) -> None:
        """Computes tokens `start` to the last but one; the last becomes node 0."""
        depth = _SOFTWARE_PREFILL_DEPTH if self.tuning.barrier_free else _PREFILL_DEPTH
        loop = Prefilling(self.device, self._programs, width, pacer, on_progress, stopped, depth, head)
        done = await loop.run(start, len(prompt) - 1)
        self._cached = list(prompt[:done])
        if stopped():
            raise StoppedError("The reply was stopped before its first token.")
        self.device.submit(await self._programs.prefill(width, 0))
