"""Recorded replies: JSON lines with `id`, `task`, `prompt` and `reply` (token ids, the stop token included)."""

import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

from pyweb.errors import UsageError

__all__ = ["Trace", "read_traces"]

_REMEDY = (
    'Each line of a trace file, gzipped or not, is a JSON object with "id", "task", "prompt" and "reply"; '
    "the last two are lists of token ids."
)


@dataclass(frozen=True)
class Trace:
    """A prompt and the reply a model gave to it."""

    id: str
    task: str
    prompt: list[int]
    reply: list[int]


def read_traces(path: str | Path) -> list[Trace]:
    """All traces of a file.

    Raises:
        UsageError: the file can't be read, has no lines, or a line is not a trace.
    """
    try:
        data = Path(path).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not text"
        raise UsageError(f"{path} can't be read as a trace file: {reason}.", _REMEDY) from error
    traces = [_trace(line, f"{path}, line {n}") for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not traces:
        raise UsageError(f"{path} has no traces.", _REMEDY)
    return traces


def _trace(line: str, where: str) -> Trace:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}, is not JSON.", _REMEDY) from error
    if not isinstance(record, dict) or not isinstance(record.get("task"), str):
        raise UsageError(f"{where}, has no task.", _REMEDY)
    for name in ("prompt", "reply"):
        if not _is_ids(record.get(name)):
            raise UsageError(f"{where}, has no token ids as its {name}.", _REMEDY)
    return Trace(str(record.get("id", "")), record["task"], record["prompt"], record["reply"])


def _is_ids(value: object) -> bool:
    # The scan and the GPU keep ids in 32 bits; a prompt of no tokens would leave nothing to draft from.
    return isinstance(value, list) and bool(value) and all(type(t) is int and 0 <= t < 1 << 31 for t in value)
