"""The `pyweb` command: arguments in, one of the commands run, errors out as one line."""

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import pyweb
from pyweb.cli.console import note
from pyweb.cli.server import DEFAULT_PORT, LAST_PORT
from pyweb.errors import PywebError, UsageError
from pyweb.storage.registry import DEFAULT

__all__ = ["main"]

INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """Reports bad arguments the way every other error is reported."""

    def error(self, message: str):
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"Run `{self.prog} --help`.")

    def parse_known_args(self, args=None, namespace=None):
        """Also what a command's own parser is called by: the error names that command."""
        namespace, unknown = super().parse_known_args(args, namespace)
        for option in unknown:
            if option.startswith("-"):
                self.error(f"there is no option {option.partition('=')[0]}")
        if unknown:
            self.error(f"the argument {unknown[0]!r} is one too many")
        return namespace, unknown


def _typed(kind: type, fits: Callable, what: str) -> Callable:
    """An argument's type: read by `kind`, with values that fit, called `what` where one doesn't."""

    def read(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


_number = _typed(float, math.isfinite, "a number")
_whole = _typed(int, lambda number: True, "a whole number")
_positive = _typed(int, lambda number: number > 0, "a positive whole number")
_port = _typed(int, lambda number: 0 < number <= LAST_PORT, f"a port from 1 to {LAST_PORT}")


def _mode(text: str) -> str:
    from pyweb.engine.modes import parse_mode

    return parse_mode(text).name


_SAMPLING = (
    ("temperature", _number, "0, the default, takes the likeliest token"),
    ("top_k", _whole, "draw among the k likeliest tokens"),
    ("top_p", _number, "draw among the fewest tokens that hold this share of probability"),
    ("min_p", _number, "draw among tokens at least this likely as a share of the likeliest"),
    ("repetition_penalty", _number, "divides the logits of tokens in prompt and reply"),
    ("presence_penalty", _number, "subtracted once for a token in the reply"),
    ("frequency_penalty", _number, "subtracted for each time that a token is in the reply"),
    ("seed", _whole, "the same seed gives the same reply"),
)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """What every command that starts a browser takes."""
    parser.add_argument("--model", default=DEFAULT, help="short name, path or URL of a GGUF file")
    parser.add_argument("--context", type=_positive, metavar="N", help="tokens of context")
    parser.add_argument("--kv", choices=("f16", "f32"), help="storage of keys and values")
    parser.add_argument("--json", action="store_true", help="one line of JSON on standard output")
    parser.add_argument("--fresh", action="store_true", help="start with an empty, temporary browser profile")
    parser.add_argument("--adapter", choices=("auto", "software", "hardware"), default="auto")
    parser.add_argument("--checks", action="store_true", help="keep bounds checks on the software adapter")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help="of the local server")


def _add_bench_options(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--model", default=DEFAULT, help="short name, path or URL of a GGUF file")
    source.add_argument("--shape", metavar="S", help="random weights of this model's sizes, such as qwen2.5-0.5b")
    parser.add_argument("--parts", metavar="A,B", help="what is measured: modes,widths,prefill,roles,host,cuts,frames")
    parser.add_argument("--runs", type=_positive, metavar="N", help="that count, warm-up aside")
    parser.add_argument("--tokens", type=_positive, metavar="N", help="of a reply")
    parser.add_argument("--prompts", metavar="FILE", help="JSON lines {id, instruction, page} in place of the built-in")
    parser.add_argument("--visits", action="store_true", help="also a first and a second visit, with an empty profile")
    parser.add_argument("--smoke", action="store_true", help="every part but visits and frames, as little as there is")
    parser.add_argument("--json", action="store_true", help="one line of JSON on standard output")
    parser.add_argument("--out", metavar="FILE", help="also write the JSON here")
    parser.add_argument("--fresh", action="store_true", help="start with an empty, temporary browser profile")
    parser.add_argument("--adapter", choices=("auto", "software", "hardware"), default="auto")
    parser.add_argument("--checks", action="store_true", help="keep bounds checks on the software adapter")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help="of the local server")
    parser.add_argument("--timeout", type=_positive, default=1800, metavar="S", help="seconds for one page")
    grid = parser.add_argument_group("on the browsers of a Selenium Grid")
    grid.add_argument("--grid", metavar="URL", help="such as http://192.0.2.1:4444; needs pyweb[grid]")
    grid.add_argument("--host", metavar="ADDRESS", help="of this machine, as the Grid's nodes reach it")
    other = parser.add_argument_group("beside other engines")
    other.add_argument("--peers", metavar="A,B", help="wllama, transformers, webllm")
    other.add_argument("--prompt-tokens", type=_positive, metavar="N", help="of the prompt (838)")
    other.add_argument("--onnx", metavar="DIR", help="the model of transformers.js")
    other.add_argument("--webllm-lib", metavar="URL", help="the model library of WebLLM")
    other.add_argument("--webllm-weights", metavar="URL", help="the folder of its weights")
    folder = parser.add_argument_group("without network")
    folder.add_argument("--folder", metavar="DIR", help="write a static folder with all that is needed, run nothing")
    folder.add_argument("--force", action="store_true", help="also into a folder that holds other files")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pyweb", description="A language model on the visitor's own GPU, in the browser.")
    parser.add_argument("--version", action="version", version=f"pyweb {pyweb.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, where: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=where)
        return command

    ask = add("ask", "ask:ask", "answer a question about a page, in a headless browser")
    ask.add_argument("question")
    ask.add_argument("--page", required=True, metavar="FILE_OR_URL")
    ask.add_argument("--max-tokens", type=_positive, metavar="N", help="longest reply")
    ask.add_argument("--mode", type=_mode, metavar="MODE", help="greedy, loop, fixed:N or adaptive")
    ask.add_argument("--window", type=_positive, metavar="W", help="steps of a window")
    ask.add_argument("--memory", choices=("off", "origin"), default="off", help="draft from replies of earlier runs")
    ask.add_argument("--budget", type=_positive, metavar="N", help="tokens of page text in the prompt")
    for name, kind, text in _SAMPLING:
        ask.add_argument("--" + name.replace("_", "-"), type=kind, metavar="X", help=text)
    _add_run_options(ask)

    perplexity = add("perplexity", "ask:perplexity", "perplexity of a text's first tokens, in the browser")
    perplexity.add_argument("--text", required=True, metavar="FILE")
    perplexity.add_argument("--tokens", required=True, type=_positive, metavar="N")
    _add_run_options(perplexity)

    extract = add("extract", "extract:extract", "title, text and blocks of a page, without a browser")
    extract.add_argument("page", metavar="PAGE.html[.gz]")
    extract.add_argument("--url", default="", help="where the page is from")
    extract.add_argument("--json", action="store_true")

    serve = add("serve", "serve:serve", "serve the site on this machine")
    serve.add_argument("--port", type=_port, default=DEFAULT_PORT)
    serve.add_argument("--model", action="append", metavar="M", help="offer this model; repeatable")

    site = add("site", "serve:site", "write the site as a folder of static files")
    site.add_argument("--out", required=True, metavar="DIR")
    carried = site.add_mutually_exclusive_group()
    carried.add_argument("--model", action="append", metavar="M", help=f"include this model ({DEFAULT}); repeatable")
    carried.add_argument("--no-model", action="store_true", help="include none")
    site.add_argument("--force", action="store_true", help="also into a folder that holds other files")

    sizes = add("sizes", "sizes:sizes", "what a first visit downloads beside the model, part by part")
    sizes.add_argument("--json", action="store_true")

    visits = add("visits", "visits:visits", "what a first and later visits take until a question can be asked")
    visits.add_argument("--model", default=DEFAULT, help="short name or path of a GGUF file")
    visits.add_argument("--count", type=_positive, default=2, metavar="N", help="visits, the first with nothing kept")
    visits.add_argument("--adapter", choices=("auto", "software", "hardware"), default="auto")
    visits.add_argument("--json", action="store_true")

    bench = add("bench", "bench:bench", "speed in a browser: here, on a Selenium Grid, beside other engines")
    _add_bench_options(bench)

    models = add("models", "models:models", "known models, or a description of a model file")
    models.add_argument("--inspect", metavar="MODEL", help="a GGUF file, or the short name of a known model")
    models.add_argument("--context", type=_positive, default=4096, metavar="N", help="of the memory estimate")
    models.add_argument("--json", action="store_true")

    simulate = add("simulate", "simulate:simulate", "tokens per step of the drafters on recorded replies")
    simulate.add_argument("traces", metavar="TRACES.jsonl.gz")
    simulate.add_argument("--memory", action="store_true", help="draft from earlier replies too")
    simulate.add_argument("--json", action="store_true", help="end with one line of JSON")

    fetch = add("fetch", "models:fetch", "get a known model into the cache")
    fetch.add_argument("model")

    setup = add("setup", "setup:setup", "fetch the browser's runtime parts and the embedded model")
    setup.add_argument("--tests", action="store_true", help="also node, npm and chromedriver, for the tests")
    return parser


def _terminate(*_) -> None:
    """SIGTERM ends the command like Ctrl-C, so that its browser ends too."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit status: 0, 1 after an error, 130 when interrupted."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        options = _parser().parse_args(arguments)
        module, _, function = options.run.partition(":")
        getattr(import_module(f"pyweb.cli.{module}"), function)(options)
    except KeyboardInterrupt:
        note("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has left; nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PywebError as error:
        if os.environ.get("PYWEB_DEBUG"):
            raise
        note(f"{error.name}: {error}")
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
