"""The public API: a loaded model that answers questions about a page."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter

from pyweb.api.answer import Answer, adapter_name
from pyweb.api.conversation import Conversation
from pyweb.api.keeping import Keeping, Store
from pyweb.api.opening import Opening, Progress, no_progress
from pyweb.api.output import Output
from pyweb.device import Device, Source
from pyweb.engine import Engine, Generation, Pacer, Sampling
from pyweb.errors import DeviceLostError, StoppedError, UsageError
from pyweb.kernels.tuning import WIDTHS
from pyweb.prompt import ChatTemplate, Tokenizer, named_specials, stop_ids
from pyweb.weights import GGUF

__all__ = ["Answer", "Assistant", "Chat"]

DEFAULT_MAX_TOKENS = 256
PAGE_BUDGET = 1536
SOFTWARE_PAGE_BUDGET = 400  # a software adapter prefills some ten tokens a second
_PLAIN_STOPS = ("\nUser:", "\nSystem:")  # a model without a template goes on with the next question
_PLAIN_NOTE = "The model file brings no chat template, so a plain one is used."


def whole_number(name: str, value: object) -> None:
    """Raises UsageError where an option is no positive whole number."""
    if type(value) is not int or value < 1:
        raise UsageError(f"{name} is a positive whole number, not {value!r:.40}.")


class Assistant:
    """A model on a device with its tokenizer and template. Questions are answered one at a time, in order.

    Attributes:
        engine: what computes.
        tokenizer: of the model.
        notes: sentences for the visitor about this model.
        load_time: seconds.
    """

    def __init__(self, opening: Opening, engine: Engine, tokenizer: Tokenizer, gguf: GGUF, load_time: float):
        self._opening, self.engine, self.tokenizer = opening, engine, tokenizer
        self.load_time = load_time
        self._template = ChatTemplate(gguf.metadata.get("tokenizer.chat_template"), named_specials(gguf.metadata))
        self._stops = stop_ids(gguf.metadata)
        self._turn = asyncio.Lock()
        self._keeping = Keeping()
        self._closed = False
        self.notes = [_PLAIN_NOTE] if self._template.plain else []

    @property
    def device(self) -> Device:
        """What the engine runs on; another one after the GPU was lost."""
        return self.engine.device

    @classmethod
    async def load(
        cls,
        open_device: Callable[[], Awaitable[Device]],
        open_source: Callable[[], Awaitable[Source]],
        open_tokenizer: Callable[[GGUF], Awaitable[Tokenizer]],
        *,
        context: int | None = None,
        kv: str = "f16",
        on_progress: Progress = no_progress,
        before_tables: Callable[[], Awaitable[None]] | None = None,
        signal: object = None,
    ) -> "Assistant":
        """Loads a model.

        Args:
            open_device, open_source: make the device and open the model file; called again if the GPU is lost.
            open_tokenizer: makes the tokenizer of a model file.
            context: tokens of prompt and reply; 4,096 or the model's own where less.
            kv: storage of keys and values, "f16" or "f32".
            on_progress: stage ("model" in bytes, "kernels"), done, total.
            before_tables: awaited before numpy is needed.
            signal: ends the load, see `Device.load`.

        Raises:
            PywebError: of the kind that says what is wrong with file, network or device.
        """
        if kv not in ("f16", "f32"):
            raise UsageError(f"Keys and values are kept as f16 or f32, not {kv!r}.")
        if context is not None:
            whole_number("context", context)
        start = perf_counter()
        opening = Opening(open_device, open_source, context, kv, before_tables)
        headers: list[GGUF] = []
        tokenizers: list[asyncio.Future] = []

        def on_header(gguf: GGUF) -> None:
            if not headers:  # builds beside the weights' arrival
                headers.append(gguf)
                tokenizers.append(asyncio.ensure_future(open_tokenizer(gguf)))
                tokenizers[0].add_done_callback(lambda task: task.cancelled() or task.exception())  # awaited below

        try:
            try:
                engine = await opening.run(on_header, on_progress, signal)
            except DeviceLostError:
                engine = await opening.run(on_header, on_progress, signal)
            tokenizer = await tokenizers[0]
        except BaseException:
            for task in tokenizers:
                task.cancel()
            raise
        return cls(opening, engine, tokenizer, headers[0], perf_counter() - start)

    async def remember(self, scope: str, store: Store | None = None, model: str = "") -> None:
        """What the drafter may copy from: "off" nothing, "conversation" earlier replies of this assistant, "origin"
        also those of earlier visits, which `store` keeps under the model's name. It keeps the costs of steps as well.

        Raises:
            UsageError: there is no such scope.
        """
        names = {"model": model, "vocabulary": self.engine.decoder.vocabulary, "adapter": adapter_name(self.device)}
        self._keeping = Keeping(scope, store, **names, kernels=self.engine.tuning.fingerprint)
        calibration = await self._keeping.open()
        if calibration:
            self.engine.calibration = calibration

    async def forget(self) -> None:
        """Erases the memory of replies, on the GPU and in the store, once what is being answered is done."""
        async with self._turn:
            self.engine.forget()
            await self._keeping.forget()

    async def recalibrate(self) -> dict[str, object]:
        """Measures the costs of steps again."""
        async with self._turn:
            self.engine.calibration = None
            await self._calibrated()
            return self.engine.calibration.to_dict()

    async def prepare(self, mode: str = "adaptive") -> None:
        """Compiles, checks and, on a first visit, measures what a mode needs, so that no question waits for it.

        Raises:
            UsageError: no such mode.
        """
        async with self._turn:
            await self._prepare(mode)

    async def draft_costs(self) -> dict[str, float]:
        """Milliseconds that drafting adds to a step, by the memory's tokens."""
        async with self._turn:
            return {str(size): cost for size, cost in (await self.engine.draft_costs()).items()}

    async def _calibrated(self) -> None:
        if self.engine.calibration is None:
            await self._keeping.keep_costs(await self.engine.calibrate())

    async def _prepare(self, mode: str) -> None:
        if mode == "adaptive":
            await self._calibrated()
        await self.engine.prepare(mode)

    @property
    def page_budget(self) -> int:
        """Tokens of page text that a prompt gets unless told otherwise."""
        software = self.engine.tuning.barrier_free
        return min(SOFTWARE_PAGE_BUDGET if software else PAGE_BUDGET, self.engine.context // 2)

    def chat(self, *, page=None, text: str = "", selection: str = "", system: str = "") -> "Chat":
        """A conversation about a page (`pyweb.page.Page`), a text, or nothing.

        Args:
            selection: what the reader has selected on the page.
            system: a system text of your own.
        """
        made = Conversation(self.tokenizer, self._template, page, text, selection, system)
        return Chat(self, made)

    async def ask(
        self, question: str, *, page=None, text: str = "", selection: str = "", system: str = "", **options
    ) -> Answer:
        """Answers one question that stands alone: a conversation of one turn, see `chat` and `Chat.ask`."""
        return await self.chat(page=page, text=text, selection=selection, system=system).ask(question, **options)

    def prompt(self, question: str, *, page=None, text: str = "", budget: int | None = None) -> list[int]:
        """Ids of the prompt that `ask` would run.

        Raises:
            EmptyPageError: the page has no text.
            PromptTooLongError: no reply fits behind it.
        """
        conversation = self.chat(page=page, text=text).conversation
        return conversation.prompt(question, self.engine.context, 0, self._budget(budget)).ids

    def _budget(self, budget: int | None) -> int:
        return self.page_budget if budget is None else budget

    async def answer(
        self,
        conversation: Conversation,
        question: str,
        *,
        budget: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        mode: str = "adaptive",
        window: int | None = None,
        sampling: Sampling | None = None,
        stop: str | Iterable[str] = (),
        reuse: bool = True,
        pacer: Pacer | None = None,
        on_text: Callable[[str], None] = lambda text: None,
        watch: Callable | None = None,
        on_progress: Progress = no_progress,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Answers a conversation's next question; see `Chat.ask`."""
        if not isinstance(question, str):
            raise UsageError(f"A question is a text, not {question!r:.40}.")
        whole_number("max_tokens", max_tokens)
        if budget is not None:
            whole_number("budget", budget)
        stops = (*([stop] if isinstance(stop, str) else stop), *(_PLAIN_STOPS if self._template.plain else ()))
        output = Output(self.tokenizer, stops, on_text)
        async with self._turn:
            if stopped():
                raise StoppedError("The question was stopped before its turn.")
            reserve = min(max_tokens, self.engine.context // 4)
            prompt = conversation.prompt(question, self.engine.context, reserve, self._budget(budget))
            before = self.device.counters()
            options = {
                "max_tokens": max_tokens,
                "stops": self._stops,
                "mode": mode,
                "window": window,
                "sampling": sampling or Sampling(),
                "remembered": self._keeping.tokens,
                "reuse": reuse,
                "pacer": pacer,
                "watch": watch,
                "on_prefill": lambda done, total: on_progress("prefill", done, total),
                "stopped": stopped,
            }
            try:
                generation = await self._generate(prompt.ids, options, output)
            except DeviceLostError:
                if self._closed:
                    raise StoppedError("The assistant was closed.") from None
                await self._recover(on_progress)
                before = self.device.counters()
                generation = await self._generate(prompt.ids, options, output)
            output.finish()
            await self._keeping.add(generation.ids)
            conversation.add(prompt, generation.ids)
        result = self._answer(output.text, prompt.ids, generation, before)
        result.dropped, result.material, result.more = prompt.dropped, prompt.material, prompt.turn.more
        if prompt.dropped:
            turns = "turn was" if prompt.dropped == 1 else f"{prompt.dropped} turns were"
            result.notes.append(f"The conversation has outgrown the context: its oldest {turns} left out.")
        return result

    async def _generate(self, ids: list[int], options: dict, output: "Output") -> Generation:
        await self._prepare(options["mode"])
        output.begin()
        return await self.engine.generate(ids, on_tokens=output.push, **options)

    async def _recover(self, on_progress: Progress) -> None:
        """Loads the model again after the GPU was lost, with what was measured on it."""
        lost = self.engine
        lost.device.close()
        self.engine = await self._opening.run(lambda gguf: None, on_progress)
        if adapter_name(self.device) == adapter_name(lost.device):
            self.engine.calibration = lost.calibration

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
        ids = list(ids) or self.engine.decoder.varied_ids(70)
        async with self._turn:
            single = await self.engine.trace(ids, 1)
            equal = {str(width): await self.engine.trace(ids, width) == single for width in widths if width > 1}
        return {"equal": equal, "tokens": len(ids) - 1, "adapter": adapter_name(self.device)}

    async def bench(self, parts: Sequence[str], *, forced: bool = False, **options) -> dict[str, object]:
        """Measures this model on this device; see `pyweb.bench.measure` for parts, options and result.

        Args:
            forced: every reply has its full length, as random weights need it.
        """
        from pyweb.bench import measure  # visitors do without

        def prompt_of(task) -> list[int]:
            return self.prompt(task.instruction, text=task.page)

        async with self._turn:
            result = await measure(self.engine, parts, prompt_of, stops=() if forced else self._stops, **options)
        result["machine"]["adapter"] = adapter_name(self.device)
        return result

    def close(self) -> None:
        """Gives the GPU's memory back."""
        self._closed = True
        self.device.close()

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
            reused=generation.reused,
            notes=list(self.notes),
            warning=self.engine.warning,
            records=generation.records,
            windows=generation.windows,
            times={
                "load": self.load_time,
                "prefill": generation.prefill_time,
                "first_token": generation.prefill_time + generation.first_token_time,
                "decode": generation.decode_time,
                "paused": generation.paused,
            },
            least_share=generation.least_share,
            **{name: counts[name] - before[name] for name in ("submits", "maps", "dispatches")},
        )


class Chat:
    """A conversation: follow-up questions take what they have in common with the last prompt from the KV cache."""

    def __init__(self, assistant: Assistant, conversation: Conversation):
        self._assistant, self.conversation = assistant, conversation

    async def ask(self, question: str, **options) -> Answer:
        """Answers the next question. A question that fails leaves the conversation as it was; a stopped reply counts.

        Args:
            budget: tokens of page text in the prompt.
            max_tokens, mode, window, sampling, reuse, pacer, watch, stopped: see `Engine.generate`.
            stop: a string or strings that end the reply; they are not part of it.
            on_text: called with each new piece of the answer; a piece never splits a character.
            on_progress: stage ("prefill" in tokens; "model" and "kernels" after the GPU was lost), done, total.

        Raises:
            EmptyPageError, PromptTooLongError, UsageError, TemplateError, StoppedError, DeviceLostError.
        """
        return await self._assistant.answer(self.conversation, question, **options)

    def select(self, text: str) -> None:
        """What the reader has selected on the page, for the next question."""
        self.conversation.selection = text
