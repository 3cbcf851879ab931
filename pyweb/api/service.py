"""The worker's side of the message protocol (docs/architecture.md): JSON in, JSON out, one assistant."""

import asyncio
import json
import traceback
from dataclasses import asdict
from inspect import signature

from pyodide.ffi import JsException
from pyodide.http import pyfetch

from pyweb.api.answer import adapter_name
from pyweb.api.assistant import Assistant, Chat
from pyweb.api.inspecting import inspect
from pyweb.api.sources import model_name, opener
from pyweb.device.browser import BrowserDevice, BrowserSource, typed
from pyweb.device.store import BrowserStore
from pyweb.engine import Pacer, Sampling
from pyweb.errors import NetworkError, PywebError, UsageError
from pyweb.models import decoder_of
from pyweb.prompt import Tokenizer, Vocabulary, bos_id, open_browser_tokenizer, vocabulary, vocabulary_of_file
from pyweb.weights import GGUF, read_gguf

__all__ = ["Service", "start"]


_METHODS = (
    *("load", "ask", "chat", "end_chat", "inspect", "perplexity", "check", "bench"),
    *("forget", "prepare", "recalibrate", "draft_costs", "close"),
)


def start(host) -> "Service":
    """The service of a worker; `host` is what worker.js hands over."""
    return Service(host)


_ANSWER_OPTIONS = {"max_tokens", "mode", "window", "budget", "stop", "reuse"}


def _check_parameters(run, number: int, params: dict) -> None:
    """Raises UsageError where a message lacks a parameter or has one that isn't known."""
    try:
        bound = signature(run).bind(number, **params)
    except TypeError as error:
        raise UsageError(f"The message doesn't fit: {error}.") from None
    unknown = bound.arguments.get("options", {}).keys() - _ANSWER_OPTIONS
    if unknown:
        known = ", ".join(sorted(_ANSWER_OPTIONS))
        raise UsageError(f"There is no option {min(unknown)}.", f"The options are {known}.")


def _sampling(options: dict) -> Sampling:
    known = {name: value for name, value in options.items() if value is not None}
    unknown = known.keys() - Sampling.__dataclass_fields__.keys()
    if unknown:
        known_names = ", ".join(Sampling.__dataclass_fields__)
        raise UsageError(f"There is no sampling option {min(unknown)}.", f"The options are {known_names}.")
    if "logit_bias" in known:
        known["logit_bias"] = tuple((int(token), float(bias)) for token, bias in known["logit_bias"])
    return Sampling(**known)


class Service:
    """Runs each message as a task; `stop` ends the one it names between two windows."""

    def __init__(self, host):
        self._host = host
        self._assistant: Assistant | None = None
        self._source: BrowserSource | None = None
        self._chats: dict[int, Chat] = {}
        self._signals: dict[int, object] = {}
        self._tasks: dict[int, asyncio.Task] = {}
        self._stopped: set[int] = set()
        self._pacers: dict[float, Pacer] = {}

    def handle(self, message: str) -> None:
        """Takes one message; everything else comes back through `host.post`."""
        request = json.loads(message)
        if request["method"] == "stop":
            number = request["params"]["id"]
            self._stopped.add(number)
            if number in self._signals:
                self._signals[number].stop()
                self._tasks[number].cancel()
            return
        if request["method"] == "frames":
            return self._hear(**request["params"])
        task = asyncio.ensure_future(self._run(request["id"], request["method"], request.get("params") or {}))
        self._tasks[request["id"]] = task

    def _hear(self, frame_budget: float, frames: int = 0, late: int = 0, hidden: bool = False) -> None:
        """News of the page's frames, for the reply that has this budget."""
        pacer = self._pacers.get(frame_budget)
        if pacer and hidden:
            pacer.release()
        elif pacer:
            pacer.hear(frames, late)

    def _pacer(self, frame_budget: float) -> Pacer:
        """Kept from reply to reply, so that each begins with what the one before found."""
        if type(frame_budget) not in (int, float):
            raise UsageError(f"A frame budget is a number of milliseconds, not {frame_budget!r:.40}.")
        if frame_budget not in self._pacers:
            self._pacers[frame_budget] = Pacer(frame_budget / 1000)
        return self._pacers[frame_budget]

    async def _run(self, number: int, method: str, params: dict) -> None:
        try:
            if method not in _METHODS:
                raise UsageError(f"The worker has no method {method!r}.")
            run = getattr(self, f"_{method}")
            _check_parameters(run, number, params)
            result = await run(number, **params)
            self._post(number, "done", result=result)
        except PywebError as error:
            self._post(number, "error", name=error.name, message=error.sentence, remedy=error.remedy)
        except asyncio.CancelledError:
            self._post(number, "error", name="StoppedError", message="Loading was stopped.", remedy="")
        except JsException as error:
            known = typed(error)
            self._post(number, "error", name=known.name, message=known.sentence, remedy=known.remedy)
        except Exception as error:
            traceback.print_exc()
            self._post(number, "error", name="PywebError", message=f"{type(error).__name__}: {error}.", remedy="")
        finally:
            self._tasks.pop(number, None)
            self._stopped.discard(number)

    def _post(self, number: int, event: str, **values: object) -> None:
        self._host.post(json.dumps({"id": number, "event": event, **values}))

    def _progress(self, number: int):
        def report(stage: str, done: int, total: int, note: str = "", left: float | None = None) -> None:
            self._post(number, "progress", stage=stage, done=done, total=total, note=note, left=left)

        return report

    def _loaded(self) -> Assistant:
        if self._assistant is None:
            raise UsageError("No model is loaded.", "Send `load` first.")
        return self._assistant

    async def _load(
        self, number: int, model: dict, context: int | None = None, kv: str = "f16", memory: str = "off"
    ) -> dict:
        if self._assistant:
            raise UsageError("A model is loaded already.", "Close it first.")
        opened = opener(self._host.weights, model, self._host.takeFile(number))
        signal = self._signals[number] = self._host.weights.signal()
        if number in self._stopped:
            signal.stop()
        report = self._load_progress(number)

        async def open_device() -> BrowserDevice:
            return BrowserDevice(await self._host.gpu.open(), self._host.weights.load)

        async def open_source() -> BrowserSource:
            self._source = BrowserSource(await opened(signal), lambda done, total: report("model", done, total))
            return self._source

        try:
            self._assistant = await Assistant.load(
                open_device,
                open_source,
                lambda gguf: self._open_tokenizer(gguf, model.get("tokenizer")),
                context=context,
                kv=kv,
                on_progress=report,
                before_tables=lambda: self._host.packages("numpy"),
                signal=signal,
            )
            await self._assistant.remember(memory, BrowserStore(self._host.store), model_name(model))
        finally:
            del self._signals[number]
        engine = self._assistant.engine
        return {
            "adapter": adapter_name(engine.device),
            "context": engine.context,
            "gpu_bytes": engine.gpu_bytes,
            "fetched": self._source.fetched,
            "not_kept": self._source.not_kept,
            "calibration": engine.calibration.to_dict() if engine.calibration else None,
            "load": self._assistant.load_time,
            "notes": self._assistant.notes,
            "warning": engine.warning,
        }

    def _load_progress(self, number: int):
        report = self._progress(number)

        def progress(stage: str, done: int, total: int) -> None:
            left = self._source.seconds_left if stage == "model" and self._source else None
            report(stage, done, total, left=left)

        return progress

    async def _open_tokenizer(self, gguf: GGUF, url: str | None) -> Tokenizer:
        host = self._host
        words = await self._vocabulary_at(url, gguf) if url else vocabulary(gguf.metadata)
        return await open_browser_tokenizer(words, host.tokenizer.openTokenizer, host.tokenizerUrl)

    async def _vocabulary_at(self, url: str, gguf: GGUF) -> Vocabulary:
        """A `tokenizer.json` in place of the model file's own vocabulary."""
        try:
            reply = await pyfetch(url)
            reply.raise_for_status()
            content = await reply.string()
        except (OSError, JsException) as error:
            raise NetworkError(f"The tokenizer {url} could not be fetched ({error}).") from None
        return vocabulary_of_file(content, bos_id(gguf.metadata), decoder_of(gguf).vocabulary)

    async def _inspect(self, number: int, model: dict, context: int = 4096) -> dict:
        """What a model file holds and whether it runs; nothing is loaded."""
        opened = opener(self._host.weights, model, self._host.takeFile(number))
        source = BrowserSource(await opened())
        try:
            return inspect(await read_gguf(source.read, source.size), context)
        finally:
            source.close()

    async def _chat(self, number: int, page: dict | None = None, text: str = "", system: str = "") -> dict:
        material = await self._extracted(page) if page else None
        self._chats[number] = self._loaded().chat(
            page=material, text=text, selection=(page or {}).get("selection") or "", system=system
        )
        return {"chat": number}

    async def _end_chat(self, number: int, chat: int) -> dict:
        self._chats.pop(chat, None)
        return {}

    async def _ask(
        self,
        number: int,
        question: str,
        chat: int | None = None,
        page: dict | None = None,
        text: str = "",
        system: str = "",
        selection: str = "",
        sampling: dict | None = None,
        frame_budget: float | None = None,
        steps: bool = False,
        **options: object,
    ) -> dict:
        report = self._progress(number)
        if chat is None:
            await self._chat(number, page, text, system)
        elif chat not in self._chats:
            raise UsageError("There is no such conversation.", "Begin one with `chat`.")
        talk = self._chats.pop(number) if chat is None else self._chats[chat]
        if selection:
            talk.select(selection)
        answer = await talk.ask(
            question,
            sampling=_sampling(sampling or {}),
            pacer=None if frame_budget is None else self._pacer(frame_budget),
            watch=self._step_reporter(number) if steps else None,
            on_text=lambda piece: self._post(number, "text", text=piece),
            on_progress=report,
            stopped=lambda: number in self._stopped,
            **{name: value for name, value in options.items() if value is not None},
        )
        return asdict(answer)

    def _step_reporter(self, number: int):
        """Posts every step: its tokens, its record (None before the first), and the tree that the next one verifies."""
        decode = self._assistant.tokenizer.decode
        texts: dict[int, str] = {}

        def text(token: int) -> str:
            if token not in texts:
                texts[token] = decode([token])
            return texts[token]

        def report(tree: list[tuple[int, int]], record: tuple[int, int, int] | None, tokens: list[int]) -> None:
            nodes = [{"id": token, "text": text(token), "parent": parent} for token, parent in tree]
            emitted = [{"id": token, "text": text(token)} for token in tokens]
            self._post(number, "step", record=record, tokens=emitted, tree=nodes)

        return report

    async def _forget(self, number: int) -> dict:
        await self._loaded().forget()
        return {}

    async def _recalibrate(self, number: int) -> dict:
        return await self._loaded().recalibrate()

    async def _prepare(self, number: int, mode: str = "adaptive") -> dict:
        await self._loaded().prepare(mode)
        calibration = self._loaded().engine.calibration
        return {"calibration": calibration.to_dict() if calibration else None}

    async def _draft_costs(self, number: int) -> dict:
        return await self._loaded().draft_costs()

    async def _extracted(self, page: dict):
        await self._host.packages("page")
        from pyweb.page import extract

        return extract(page["html"], page.get("url") or "")

    async def _perplexity(self, number: int, text: str, tokens: int) -> dict:
        report = self._progress(number)
        return await self._loaded().perplexity(text, tokens, lambda done, total: report("prefill", done, total))

    async def _check(self, number: int, widths: list[int]) -> dict:
        return await self._loaded().check(widths)

    async def _bench(
        self,
        number: int,
        parts: list[str],
        settings: dict | None = None,
        prompts: list | None = None,
        measured: dict | None = None,
        forced: bool = False,
    ) -> dict:
        report = self._progress(number)
        return await self._loaded().bench(
            parts,
            forced=forced,
            settings=settings,
            prompts=prompts,
            measured=measured,
            report=lambda what, done, total: report("bench", done, total, note=what),
            stopped=lambda: number in self._stopped,
        )

    async def _close(self, number: int) -> dict:
        if self._assistant:
            self._assistant.close()
            self._assistant = None
        self._chats.clear()
        self._pacers.clear()
        return {}
