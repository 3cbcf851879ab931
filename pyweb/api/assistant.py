"""The public API: a loaded model that answers questions about a page."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from pyweb import __version__
from pyweb.device import Device, Source
from pyweb.engine import Calibration, Engine, Generation, Sampling
from pyweb.errors import EmptyPageError, PromptTooLongError, UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.prompt import (
    ChatTemplate,
    TextStream,
    Tokenizer,
    named_specials,
    page_messages,
    prompt_ids,
    stop_ids,
    text_messages,
)
from pyweb.speculation.costs import costs_key
from pyweb.speculation.memory import Memory
from pyweb.weights import GGUF, read_gguf

__all__ = ["Answer", "Assistant", "adapter_name"]

SCOPES = ("off", "conversation", "origin")
DEFAULT_MAX_TOKENS = 256
PAGE_BUDGET = 1536
SOFTWARE_PAGE_BUDGET = 400  # a software adapter prefills some ten tokens a second


def adapter_name(device: Device) -> str:
    """The adapter in words, from what WebGPU tells of it."""
    words = dict.fromkeys(str(device.info.get(key) or "") for key in ("vendor", "architecture", "description"))
    return " ".join(word for word in words if word) or "unknown adapter"


class Store(Protocol):
    """Text by key, kept between visits: `js_bridge/store.js` in a browser."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, text: str) -> None: ...

    async def remove(self, prefix: str) -> None: ...


def _calibration(text: str) -> Calibration | None:
    """A kept calibration; None where it is damaged, so that it is measured again."""
    try:
        return Calibration.from_dict(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


@dataclass
class Answer:
    """An answer and how it came about. `times` in seconds; counts are of this answer alone.

    `warning` is a sentence for the visitor where this device can't run wide steps exactly, else empty. `records` has
    (tokens emitted, match length, width) of each step, `windows` (width, steps, seconds) of each window.
    """

    answer: str
    prompt_ids: list[int]
    reply_ids: list[int]
    mode: str
    adapter: str
    finish_reason: str
    tokens_per_second: float
    submits: int
    maps: int
    dispatches: int
    steps: int
    widths: dict[str, int]
    warning: str = ""
    records: list[tuple[int, int, int]] = field(default_factory=list)
    windows: list[tuple[int, int, float]] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)


class Assistant:
    """A model on a device with its tokenizer and template. Questions are answered one at a time, in order."""

    def __init__(self, device: Device, engine: Engine, tokenizer: Tokenizer, gguf: GGUF, load_time: float):
        self.device, self.engine, self.tokenizer = device, engine, tokenizer
        self.load_time = load_time
        self._template = ChatTemplate(gguf.metadata.get("tokenizer.chat_template"), named_specials(gguf.metadata))
        self._stops = stop_ids(gguf.metadata)
        self._turn = asyncio.Lock()
        self._scope, self._store, self._key = "off", None, ""
        self._memory = Memory()

    @classmethod
    async def load(
        cls,
        device: Device,
        source: Source,
        open_tokenizer: Callable[[dict], Awaitable[Tokenizer]],
        *,
        context: int | None = None,
        kv: str = "f16",
        on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
        before_tables: Callable[[], Awaitable[None]] | None = None,
    ) -> "Assistant":
        """Loads a model.

        Args:
            source: the model file.
            open_tokenizer: makes the tokenizer of a GGUF's metadata.
            context: tokens of prompt and reply; 4,096 or the model's own where less.
            kv: storage of keys and values, "f16" or "f32".
            on_progress: stage ("model" in bytes, "kernels"), done, total.
            before_tables: awaited before numpy is needed.

        Raises:
            PywebError: of the kind that says what is wrong with file, network or device.
        """
        if kv not in ("f16", "f32"):
            raise UsageError(f"Keys and values are kept as f16 or f32, not {kv!r}.")
        start = perf_counter()
        gguf = await read_gguf(source.read, source.size)
        tokenizer = asyncio.ensure_future(open_tokenizer(gguf.metadata))
        engine = await Engine.load(
            device,
            source,
            gguf,
            context=context,
            kv_f16=kv == "f16",
            on_progress=lambda done, total: on_progress("model", done, total),
            before_tables=before_tables,
        )
        on_progress("kernels", 0, 1)
        await engine.compile()
        on_progress("kernels", 1, 1)
        return cls(device, engine, await tokenizer, gguf, perf_counter() - start)

    async def remember(self, scope: str, store: Store | None = None, model: str = "") -> None:
        """What the drafter may copy from: "off" nothing, "conversation" earlier replies of this assistant, "origin"
        also those of earlier visits, which `store` keeps under the model's name. It keeps the costs of steps as well.

        Raises:
            UsageError: there is no such scope.
        """
        if scope not in SCOPES:
            raise UsageError(f"The memory's scope is {', '.join(SCOPES)}, not {scope!r}.")
        self._scope, self._store, self._key = scope, store, model
        if scope == "off":
            self._memory = Memory()
        if store is None:
            return
        if scope == "origin":
            self._memory = Memory.from_text(await store.get(self._memory_key) or "")
        kept = await store.get(self._costs_key)
        if kept:
            self.engine.calibration = _calibration(kept)

    @property
    def _memory_key(self) -> str:
        return f"memory\n{self._key}\n{self.engine.decoder.vocabulary}"

    @property
    def _costs_key(self) -> str:
        return costs_key(adapter_name(self.device), self._key, __version__)

    async def forget(self) -> None:
        """Erases the memory of replies, here and in the store."""
        self._memory.forget()
        self.engine.forget()
        if self._store is not None:
            await self._store.remove("memory\n")

    async def recalibrate(self) -> dict[str, object]:
        """Measures the costs of steps again."""
        async with self._turn:
            self.engine.calibration = None
            return await self._calibrated()

    async def draft_costs(self) -> dict[str, float]:
        """Milliseconds that drafting adds to a step, by the memory's tokens."""
        async with self._turn:
            return {str(size): cost for size, cost in (await self.engine.draft_costs()).items()}

    async def _calibrated(self) -> dict[str, object]:
        known = self.engine.calibration is not None
        calibration = (await self.engine.calibrate()).to_dict()
        if self._store is not None and not known:
            await self._store.put(self._costs_key, json.dumps(calibration))
        return calibration

    async def _remember_reply(self, reply: list[int]) -> None:
        if self._scope == "off":
            return
        self._memory.add(reply)
        if self._scope == "origin" and self._store is not None:
            await self._store.put(self._memory_key, self._memory.to_text())

    @property
    def page_budget(self) -> int:
        """Tokens of page text that a prompt gets unless told otherwise."""
        software = self.engine.tuning.barrier_free
        return min(SOFTWARE_PAGE_BUDGET if software else PAGE_BUDGET, self.engine.context // 2)

    async def ask(
        self,
        question: str,
        *,
        page=None,
        text: str = "",
        budget: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        mode: str = "adaptive",
        window: int | None = None,
        sampling: Sampling | None = None,
        on_text: Callable[[str], None] = lambda text: None,
        watch: Callable | None = None,
        on_prefill: Callable[[int, int], None] = lambda done, total: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Answers a question about a page (`pyweb.page.Page`), a text, or nothing.

        Args:
            budget: tokens of page text in the prompt.
            max_tokens, mode, window, sampling, watch, stopped: see `Engine.generate`.
            on_text: called with each new piece of the answer; a piece never splits a character.
            on_prefill: prompt tokens done and in all.

        Raises:
            EmptyPageError, PromptTooLongError, UsageError, TemplateError, StoppedError, DeviceLostError.
        """
        if not question.strip():
            raise UsageError("The question is empty.", "Ask something.")
        async with self._turn:
            ids = self.prompt(question, page=page, text=text, budget=budget)
            if mode == "adaptive":
                await self._calibrated()
            await self.engine.prepare(mode)
            before = self.device.counters()
            stream = TextStream(self.tokenizer.decode)
            pieces: list[str] = []

            def emit(piece: str) -> None:
                if piece:
                    pieces.append(piece)
                    on_text(piece)

            generation = await self.engine.generate(
                ids,
                max_tokens=max_tokens,
                stops=self._stops,
                mode=mode,
                window=window,
                sampling=sampling or Sampling(),
                remembered=self._memory.tokens,
                watch=watch,
                on_tokens=lambda new: emit(stream.push(new)),
                on_prefill=on_prefill,
                stopped=stopped,
            )
            emit(stream.finish())
            await self._remember_reply(generation.ids)
            return self._answer("".join(pieces), ids, generation, before)

    def prompt(self, question: str, *, page=None, text: str = "", budget: int | None = None) -> list[int]:
        """Ids of the prompt that `ask` would run.

        Raises:
            EmptyPageError: the page has no text.
            PromptTooLongError: no reply fits behind it.
        """
        budget = self.page_budget if budget is None else budget
        if page is not None:
            from pyweb.page import select  # lxml and trafilatura load in the background

            blocks = select(page, question, budget, lambda part: len(self.tokenizer.encode_untrusted(part)))
            if not blocks:
                raise EmptyPageError("The page has no text that fits the budget.")
            messages = page_messages(page.title, blocks, question)
        else:
            messages = text_messages(text, question)
        ids = prompt_ids(self.tokenizer, self._template, messages)
        if len(ids) >= self.engine.context:
            raise PromptTooLongError(f"The prompt has {len(ids)} tokens, the context holds {self.engine.context}.")
        return ids

    async def perplexity(
        self, text: str, tokens: int, on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> dict[str, object]:
        """Perplexity of a text's first `tokens` tokens as one sequence: exp of the mean over tokens 2 to the last."""
        ids = self.tokenizer.encode_untrusted(text)[: max(tokens, 0)]
        if len(ids) < max(tokens, 2):
            raise UsageError(f"The text has {len(ids)} tokens, fewer than the {tokens} asked for.")
        async with self._turn:
            before = self.device.counters()["dispatches"]
            total = await self.engine.perplexity_sum(ids, on_progress)
            return {
                "perplexity": math.exp(total / (len(ids) - 1)),
                "adapter": adapter_name(self.device),
                "dispatches": self.device.counters()["dispatches"] - before,
            }

    async def check(self, widths: Sequence[int] = WIDTHS, ids: Sequence[int] = ()) -> dict[str, object]:
        """Compares steps of several widths with single steps: logits and KV cache of the whole model, bit for bit.

        Args:
            widths: of `WIDTHS`.
            ids: tokens to run; 70 of the vocabulary where left out.

        Returns:
            `equal`: width (as text) to whether not one bit differs.
        """
        unknown = [width for width in widths if width not in WIDTHS]
        if unknown:
            raise UsageError(f"There is no width {unknown[0]}; the widths are {', '.join(map(str, WIDTHS))}.")
        ids = list(ids) or [1 + i * 7919 % (self.engine.decoder.vocabulary - 1) for i in range(70)]
        async with self._turn:
            single = await self.engine.trace(ids, 1)
            equal = {str(width): await self.engine.trace(ids, width) == single for width in widths if width > 1}
        return {"equal": equal, "tokens": len(ids) - 1, "adapter": adapter_name(self.device)}

    def _answer(self, text: str, ids: list[int], generation: Generation, before: dict[str, int]) -> Answer:
        counts = self.device.counters()
        return Answer(
            answer=text,
            prompt_ids=ids,
            reply_ids=generation.ids,
            mode=generation.mode,
            adapter=adapter_name(self.device),
            finish_reason=generation.finish_reason,
            tokens_per_second=generation.tokens_per_second,
            steps=generation.steps,
            widths={str(width): count for width, count in sorted(generation.widths.items())},
            warning=self.engine.warning,
            records=generation.records,
            windows=generation.windows,
            times={
                "load": self.load_time,
                "prefill": generation.prefill_time,
                "first_token": generation.prefill_time + generation.first_token_time,
                "decode": generation.decode_time,
            },
            **{name: counts[name] - before[name] for name in ("submits", "maps", "dispatches")},
        )
