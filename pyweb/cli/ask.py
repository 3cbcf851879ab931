"""`pyweb ask` and `pyweb perplexity`: one run in a headless browser."""

import json
import sys
from argparse import Namespace
from pathlib import Path

from pyweb.cli.console import Progress, note
from pyweb.cli.runner import Machine, run_job
from pyweb.errors import UsageError

__all__ = ["ask", "perplexity"]


SAMPLING_OPTIONS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
)


class _Listener:
    """Shows progress on standard error and streams the answer to standard output."""

    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._progress = Progress()
        self._answering = False

    def __call__(self, message: dict) -> None:
        if message["event"] == "text" and not self._quiet:
            if not self._answering:
                self._progress.finish()
                self._answering = True
            print(message["text"], end="", flush=True)
        elif message["event"] == "progress" and not self._answering:
            values = (message.get("done") or 0, message.get("total") or 0, message.get("note") or "")
            self._progress.update(message["stage"], *values)

    def finish(self) -> None:
        """Ends whatever line is open."""
        self._progress.finish()
        if self._answering:
            print(flush=True)


def _run(options: Namespace, method: str, params: dict, page: str | None = None) -> dict:
    machine = Machine(options.adapter, options.checks, options.fresh, options.port)
    load = {"context": options.context, "kv": options.kv, "memory": getattr(options, "memory", None)}
    listener = _Listener(quiet=options.json)
    try:
        return run_job(options.model, _given(load), method, _given(params), machine, listener, page)
    finally:
        listener.finish()


def _given(values: dict) -> dict:
    """Without what was left to its default."""
    return {name: value for name, value in values.items() if value is not None}


def ask(options: Namespace) -> None:
    """Answers a question about a page; the answer on standard output, numbers on standard error."""
    from pyweb.engine import Sampling

    if not options.question.strip():
        raise UsageError("The question is empty.")
    sampling = _given({name: getattr(options, name) for name in SAMPLING_OPTIONS})
    # Out of range, they fail here and not in the browser.
    Sampling(**sampling)
    params = {
        "question": options.question,
        "max_tokens": options.max_tokens,
        "mode": options.mode,
        "window": options.window,
        "budget": options.budget,
        "sampling": sampling,
    }
    result = _run(options, "ask", params, options.page)
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    note(_statistics(result))
    if result.get("warning"):
        note(result["warning"])


def _statistics(result: dict) -> str:
    """Tokens, time, tokens per second and adapter of a reply, in a line."""
    times = result.get("times", {})
    seconds = sum(times.get(name) or 0 for name in ("prefill", "decode"))
    parts = [
        f"{len(result.get('reply_ids', []))} tokens in {seconds:.1f} s",
        f"{result.get('tokens_per_second') or 0:.1f} tokens/s",
        f"first token after {times.get('first_token') or 0:.1f} s",
        f"loaded in {times.get('load') or 0:.1f} s",
        f"adapter {result.get('adapter', 'unknown')}",
    ]
    return " · ".join(parts)


def perplexity(options: Namespace) -> None:
    """Perplexity of a text's first tokens."""
    try:
        text = Path(options.text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"The text {options.text} can't be read: {reason}.", "Give a UTF-8 file.") from error
    # f16 keys and values are a second rounding, whose noise a few hundred tokens don't average out.
    options.kv = options.kv or "f32"
    result = _run(options, "perplexity", {"text": text, "tokens": options.tokens})
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print(f"{result['perplexity']:.3f}", flush=True)
        print(f"adapter {result['adapter']}, {result['dispatches']} dispatches", file=sys.stderr)
