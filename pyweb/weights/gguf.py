"""Read the header of a GGUF file: metadata and where each tensor lies.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Any bytes
give a `GGUF`, a `ModelFileError` or a request for more bytes; what a hostile
header announces is checked against the file's size before anything is
allocated. Plain Python on purpose: this runs before numpy is loaded.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import prod
from struct import Struct, error, unpack_from
from typing import NamedTuple

from pyweb.errors import ModelFileError

__all__ = ["GGUF", "TENSOR_KINDS", "NeedMoreBytes", "TensorInfo", "TensorKind", "parse_gguf", "read_gguf"]


class TensorKind(NamedTuple):
    """A ggml tensor type: `block` values are stored in `nbytes` bytes."""

    name: str
    block: int
    nbytes: int


TENSOR_KINDS = {
    0: TensorKind("F32", 1, 4),
    1: TensorKind("F16", 1, 2),
    2: TensorKind("Q4_0", 32, 18),
    3: TensorKind("Q4_1", 32, 20),
    6: TensorKind("Q5_0", 32, 22),
    7: TensorKind("Q5_1", 32, 24),
    8: TensorKind("Q8_0", 32, 34),
    9: TensorKind("Q8_1", 32, 40),
    10: TensorKind("Q2_K", 256, 84),
    11: TensorKind("Q3_K", 256, 110),
    12: TensorKind("Q4_K", 256, 144),
    13: TensorKind("Q5_K", 256, 176),
    14: TensorKind("Q6_K", 256, 210),
    15: TensorKind("Q8_K", 256, 292),
    16: TensorKind("IQ2_XXS", 256, 66),
    17: TensorKind("IQ2_XS", 256, 74),
    18: TensorKind("IQ3_XXS", 256, 98),
    19: TensorKind("IQ1_S", 256, 50),
    20: TensorKind("IQ4_NL", 32, 18),
    21: TensorKind("IQ3_S", 256, 110),
    22: TensorKind("IQ2_S", 256, 82),
    23: TensorKind("IQ4_XS", 256, 136),
    24: TensorKind("I8", 1, 1),
    25: TensorKind("I16", 1, 2),
    26: TensorKind("I32", 1, 4),
    27: TensorKind("I64", 1, 8),
    28: TensorKind("F64", 1, 8),
    29: TensorKind("IQ1_M", 256, 56),
    30: TensorKind("BF16", 1, 2),
    34: TensorKind("TQ1_0", 256, 54),
    35: TensorKind("TQ2_0", 256, 66),
    39: TensorKind("MXFP4", 32, 17),
    40: TensorKind("NVFP4", 64, 36),
    41: TensorKind("Q1_0", 128, 18),
}

# Metadata value types: id -> struct letter and bytes; 8 is a string, 9 an array.
_SCALARS = {
    0: ("B", 1),
    1: ("b", 1),
    2: ("H", 2),
    3: ("h", 2),
    4: ("I", 4),
    5: ("i", 4),
    6: ("f", 4),
    7: ("?", 1),
    10: ("Q", 8),
    11: ("q", 8),
    12: ("d", 8),
}
_STRING, _ARRAY = 8, 9
_U64 = Struct("<Q")

# The largest vocabularies in use (Gemma's, 262k tokens) need 8 MiB and 1.3 million array items.
_MAX_HEADER = 64 << 20
_MAX_ITEMS = 2 << 20
_MAX_ENTRIES = 1 << 16
_MAX_DIMS = 4
_MAX_NESTING = 4
_FIRST_READ = 256 << 10


class NeedMoreBytes(Exception):
    """The header is longer than the bytes at hand: at least `count` bytes of the file are needed."""

    def __init__(self, count: int):
        super().__init__(count)
        self.count = count


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies: `shape` in numpy order (rows first), `offset` in bytes from the file's start."""

    name: str
    shape: tuple[int, ...]
    kind: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class GGUF:
    """A parsed header; tensors are in the file's order."""

    version: int
    metadata: dict[str, object]
    tensors: dict[str, TensorInfo]


def parse_gguf(data: bytes | bytearray | memoryview, file_size: int | None = None) -> GGUF:
    """Parse a header from the file's first bytes.

    Args:
        data: the file's beginning, or all of it.
        file_size: of the whole file, in bytes; without it a tensor past the end is not noticed.

    Raises:
        NeedMoreBytes: the header isn't complete, but so far right.
        ModelFileError: this is no GGUF that we can read.
    """
    cursor = _Cursor(data, file_size)
    version = _read_version(cursor)
    tensor_count, metadata_count = cursor.u64(), cursor.u64()
    cursor.check_count("tensors", tensor_count, 24, _MAX_ENTRIES)
    cursor.check_count("metadata entries", metadata_count, 13, _MAX_ENTRIES)
    metadata = _read_metadata(cursor, metadata_count)
    tensors = _read_tensors(cursor, tensor_count, _alignment(metadata))
    return GGUF(version, metadata, tensors)


async def read_gguf(read: Callable[[int, int], Awaitable[bytes]], size: int) -> GGUF:
    """Parse a header by reading growing ranges of a file of `size` bytes.

    Args:
        read: `await read(offset, length)` gives `length` bytes.

    Raises:
        ModelFileError: as `parse_gguf`; also where `read` gives fewer bytes than asked.
    """
    data, wanted = b"", min(size, _FIRST_READ)
    while True:
        part = await read(len(data), wanted - len(data))
        if len(part) != wanted - len(data):
            raise ModelFileError(f"The file ends after {len(data) + len(part)} bytes, {size} were expected.")
        data += bytes(part)
        try:
            return parse_gguf(data, size)
        except NeedMoreBytes as more:
            wanted = min(size, max(more.count, 2 * len(data)))


class _Cursor:
    """A position in the header; every read checks what is there before it allocates."""

    def __init__(self, data, file_size):
        self.data = data
        self.size = len(data)
        self.file_size = file_size
        self.pos = 0
        self.items = 0

    def need(self, end: int):
        """Make sure that the header's bytes up to `end` are at hand."""
        if end <= self.size:
            return
        if self.file_size is not None and end > self.file_size:
            raise ModelFileError(f"The file is cut short: the header goes on past byte {self.file_size}.")
        if end > _MAX_HEADER:
            raise ModelFileError(f"The header is longer than {_MAX_HEADER >> 20} MiB.")
        raise NeedMoreBytes(end)

    def check_count(self, what: str, count: int, smallest: int, limit: int):
        """Refuse `count` items of at least `smallest` bytes that can't be there."""
        if count > limit:
            raise ModelFileError(f"The header announces {count} {what}; more than {limit} can't be right.")
        self.need(self.pos + count * smallest)

    def scalar(self, letter: str, nbytes: int):
        self.need(self.pos + nbytes)
        (value,) = unpack_from("<" + letter, self.data, self.pos)
        self.pos += nbytes
        return value

    def u32(self) -> int:
        return self.scalar("I", 4)

    def u64(self) -> int:
        return self.scalar("Q", 8)

    def raw_string(self) -> bytes:
        length = self.u64()
        self.need(self.pos + length)
        self.pos += length
        return bytes(self.data[self.pos - length : self.pos])

    def name(self, what: str) -> str:
        raw = self.raw_string()
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise ModelFileError(f"The name of a {what} is not UTF-8 ({raw[:40]!r}).") from None

    def strings(self, count: int) -> list[str]:
        """Read `count` strings; the hot loop of a header, since a vocabulary has 100,000 and more."""
        data, pos, size, unpack = self.data, self.pos, self.size, _U64.unpack_from
        found = []
        append = found.append
        try:
            for _ in range(count):
                end = pos + 8 + unpack(data, pos)[0]
                if end > size:
                    self.need(end)
                append(str(data[pos + 8 : end], "utf-8", "replace"))
                pos = end
        except error:
            self.need(pos + 8)
        self.pos = pos
        return found


def _read_version(cursor: _Cursor) -> int:
    cursor.need(4)
    if bytes(cursor.data[:4]) != b"GGUF":
        raise ModelFileError("The file is not a GGUF model: it doesn't begin with the letters GGUF.")
    cursor.pos = 4
    version = cursor.u32()
    if version and version & 0xFFFF == 0:
        raise ModelFileError("The file is a big-endian GGUF; only little-endian files are supported.")
    if version not in (2, 3):
        raise ModelFileError(f"The file has GGUF version {version}; versions 2 and 3 are supported.")
    return version


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, object]:
    metadata = {}
    for _ in range(count):
        key = cursor.name("metadata entry")
        if key in metadata:
            raise ModelFileError(f"The metadata has the key {_shown(key)} twice.")
        metadata[key] = _read_value(cursor, cursor.u32(), key)
    return metadata


def _read_value(cursor: _Cursor, kind: int, key: str, depth: int = 0):
    if kind in _SCALARS:
        return cursor.scalar(*_SCALARS[kind])
    if kind == _STRING:
        return cursor.raw_string().decode("utf-8", "replace")
    if kind == _ARRAY:
        return _read_array(cursor, key, depth)
    raise ModelFileError(f"The metadata value of {_shown(key)} has the unknown type {kind}.")


def _read_array(cursor: _Cursor, key: str, depth: int) -> list:
    if depth == _MAX_NESTING:
        raise ModelFileError(f"The metadata value of {_shown(key)} nests arrays too deeply.")
    kind, count = cursor.u32(), cursor.u64()
    letter, smallest = _SCALARS.get(kind, ("", 12 if kind == _ARRAY else 8))
    cursor.check_count(f"values in {_shown(key)}", count, smallest, _MAX_ITEMS - cursor.items)
    cursor.items += count
    if letter:
        cursor.pos += count * smallest
        return list(unpack_from(f"<{count}{letter}", cursor.data, cursor.pos - count * smallest))
    if kind == _STRING:
        return cursor.strings(count)
    return [_read_value(cursor, kind, key, depth + 1) for _ in range(count)]


def _alignment(metadata: dict[str, object]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise ModelFileError(f"The alignment is {_shown(alignment)}; it must be a power of two.")
    return alignment


def _read_tensors(cursor: _Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    found = {}
    for _ in range(count):
        info = _read_tensor(cursor, alignment)
        if info.name in found:
            raise ModelFileError(f"The file has the tensor {_shown(info.name)} twice.")
        found[info.name] = info
    start = -(-cursor.pos // alignment) * alignment
    tensors = {
        name: TensorInfo(name, info.shape, info.kind, start + info.offset, info.nbytes)
        for name, info in found.items()
    }
    _check_places(tensors, cursor.file_size)
    return tensors


def _read_tensor(cursor: _Cursor, alignment: int) -> TensorInfo:
    """Read one entry; its offset still counts from the start of the tensor data."""
    name = cursor.name("tensor")
    shown = f"The tensor {_shown(name)}"
    dims = cursor.u32()
    if dims > _MAX_DIMS:
        raise ModelFileError(f"{shown} has {dims} dimensions; at most {_MAX_DIMS} are possible.")
    shape = tuple(cursor.u64() for _ in range(dims))[::-1]
    kind_id, offset = cursor.u32(), cursor.u64()
    kind = TENSOR_KINDS.get(kind_id)
    if kind is None:
        raise ModelFileError(f"{shown} has the unknown weight type {kind_id}.")
    values, row = prod(shape), shape[-1] if shape else 1
    if not 0 < values < 1 << 63:
        raise ModelFileError(f"{shown} has the impossible shape {shape}.")
    if row % kind.block:
        raise ModelFileError(f"{shown} has rows of {row} values, no multiple of {kind.name}'s {kind.block}.")
    if offset % alignment:
        raise ModelFileError(f"{shown} begins at byte {offset}, no multiple of the alignment {alignment}.")
    return TensorInfo(name, shape, kind.name, offset, values // kind.block * kind.nbytes)


def _check_places(tensors: dict[str, TensorInfo], file_size: int | None):
    before, end = "", 0
    for info in sorted(tensors.values(), key=lambda info: info.offset):
        if info.offset < end:
            raise ModelFileError(f"The tensors {_shown(before)} and {_shown(info.name)} overlap.")
        before, end = info.name, info.offset + info.nbytes
        if file_size is not None and end > file_size:
            raise ModelFileError(
                f"The file is cut short: the tensor {_shown(info.name)} ends at byte {end} of {file_size}."
            )


def _shown(value: object) -> str:
    """A name from the file as an error shows it: quoted, and never a page long."""
    text = repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 80 else text[:77] + "..."
