"""A GGUF file of a real model's shape with random weights, so that its speed can be measured without a download.

A file is its header, which is made here, and bytes that follow a rule, which `js_bridge/random.js` follows in a page
and `write` on a machine: both give the same file. Matrices are Q4_0 with values of mean 0 and a standard deviation of
0.018, so that activations stay finite; norms are 1 and biases 0. The tokenizer has a token for each byte, and fills the
vocabulary up with tokens that no text contains.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import count
from math import prod
from pathlib import Path
from struct import pack
from typing import NamedTuple

from pyweb.weights.shapes import SHAPES, Shape, shape_of

__all__ = ["SHAPES", "Fill", "RandomFile", "header", "random_file", "write"]

ALIGNMENT = 32
_Q4_0, _F32 = 2, 0
_BLOCK, _BLOCK_BYTES = 32, 18

# The pattern that matrices are cut from. A prime number of blocks above every vocabulary: no two rows are equal.
BLOCKS = 152_077
_SCALE = pack("<e", 2**-8)
_SEED = 0x9E3779B9
_STEP = 93_989  # blocks from one tensor's place in the pattern to the next one's: its length over the golden ratio

_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# A file has to have merges. These two bytes are in no UTF-8, so every text has as many tokens as bytes.
_NO_TEXT = "þÿ"
_TEMPLATE = """\
{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""


def _first_tokens() -> list[str]:
    """The bytes as byte-level tokenizers write them (GPT-2's `bytes_to_unicode`), what they merge to, and specials."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)] + [_NO_TEXT, *_SPECIALS]


_FIRST_TOKENS = _first_tokens()


class Fill(NamedTuple):
    """`length` bytes from `offset` of a file on: a pattern from its byte `start` on, which begins anew at its end.

    `pattern` is "blocks" or "ones".
    """

    offset: int
    length: int
    pattern: str
    start: int


class RandomFile(NamedTuple):
    """A file of `size` bytes: the header, then zeros where no fill says otherwise. Fills are in the file's order."""

    name: str
    header: bytes
    size: int
    fills: tuple[Fill, ...]

    def recipe(self) -> dict[str, object]:
        """All but the header, as JSON has it; `js_bridge/random.js` takes it together with `header`."""
        return {"name": self.name, "size": self.size, "fills": [fill._asdict() for fill in self.fills]}

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes, some MB at a time."""
        yield self.header
        patterns = {"blocks": _blocks(), "ones": pack("<f", 1.0) * 4096}
        end = len(self.header)
        for fill in self.fills:
            yield bytes(fill.offset - end)
            yield from _repeated(patterns[fill.pattern], fill.start, fill.length)
            end = fill.offset + fill.length
        yield bytes(self.size - end)


def random_file(name: str) -> RandomFile:
    """The file of a shape of `SHAPES`, named as the model in it.

    Raises:
        UsageError: there is no such shape.
    """
    shape = shape_of(name)
    title = f"{name} with random weights"
    entries, tensors = _metadata(title, shape), list(shape.tensors())
    parts = [b"GGUF", pack("<IQQ", 3, len(tensors), len(entries))]
    parts += [_string(key) + value for key, value in entries.items()]
    places, end = [], 0
    for tensor, sizes in tensors:
        matrix = len(sizes) > 1
        parts.append(_string(tensor) + pack(f"<I{len(sizes)}Q", len(sizes), *reversed(sizes)))
        parts.append(pack("<IQ", _Q4_0 if matrix else _F32, end))
        nbytes = prod(sizes) // _BLOCK * _BLOCK_BYTES if matrix else prod(sizes) * 4
        places.append((tensor, end, nbytes))
        end = _aligned(end + nbytes)
    raw, row_bytes = b"".join(parts), shape.hidden // _BLOCK * _BLOCK_BYTES
    start = _aligned(len(raw))
    return RandomFile(title, raw.ljust(start, b"\0"), start + end, tuple(_fills(start, places, row_bytes)))


def header(name: str) -> bytes:
    """The header of a shape's file, up to where the first tensor begins; raises as `random_file`."""
    return random_file(name).header


def write(name: str, path: Path) -> None:
    """Writes the file of a shape; raises as `random_file`."""
    from pyweb.storage.files import whole_file  # not for browsers

    made = random_file(name)
    with whole_file(path) as file:
        for chunk in made.chunks():
            file.write(chunk)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _fills(start: int, places: Sequence[tuple[str, int, int]], row_bytes: int) -> Iterator[Fill]:
    """Zeros need no fill: biases, and in a head of its own the rows of bytes and special tokens.

    Such a model's likeliest token is none of them, so that no reply ends early or has half a character.
    """
    for number, (tensor, offset, nbytes) in enumerate(places):
        if tensor.endswith("norm.weight"):
            yield Fill(start + offset, nbytes, "ones", 0)
        elif tensor.endswith(".weight"):
            skipped = len(_FIRST_TOKENS) * row_bytes if tensor == "output.weight" else 0
            place = number * _STEP % BLOCKS * _BLOCK_BYTES
            yield Fill(start + offset + skipped, nbytes - skipped, "blocks", place)


def _blocks() -> bytes:
    """Blocks of Q4_0: a scale, and codes from xorshift32; the twin of `blocks` in random.js."""
    words, state = array("I"), _SEED
    for _ in range(BLOCKS * 4):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        words.append(state)
    if sys.byteorder == "big":
        words.byteswap()
    # A code c stands for c - 8: with 8 in place of 0 the mean is 0.
    even = bytes((byte & 15 or 8) | (byte >> 4 or 8) << 4 for byte in range(256))
    codes = words.tobytes().translate(even)
    return b"".join(_SCALE + codes[at : at + 16] for at in range(0, len(codes), 16))


def _repeated(pattern: bytes, start: int, length: int) -> Iterator[bytes]:
    while length > 0:
        piece = pattern[start : start + length]
        yield piece
        length -= len(piece)
        start = 0


def _metadata(title: str, shape: Shape) -> dict[str, bytes]:
    """What pyweb and llama.cpp ask for, each with its type."""
    tokens = [*_FIRST_TOKENS, *(f"[{number}]" for number in range(len(_FIRST_TOKENS), shape.vocabulary))]
    end_of_text, _, end_of_turn = (tokens.index(text) for text in _SPECIALS)
    family = {
        "context_length": shape.context,
        "embedding_length": shape.hidden,
        "block_count": shape.layers,
        "feed_forward_length": shape.feed_forward,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_size,
        "attention.value_length": shape.head_size,
        "attention.layer_norm_rms_epsilon": shape.norm_eps,
        "rope.dimension_count": shape.head_size,
        "rope.freq_base": shape.rope_base,
        "vocab_size": shape.vocabulary,
    }
    tokenizer = {
        "model": "gpt2",
        "pre": "qwen2" if shape.family == "qwen2" else "llama-bpe",
        "tokens": tokens,
        "token_type": [3 if token in _SPECIALS else 1 for token in tokens],  # control, normal
        "merges": [" ".join(_NO_TEXT)],
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_turn,
        "padding_token_id": end_of_text,
        "add_bos_token": False,
    }
    entries = {
        "general.architecture": shape.family,
        "general.name": title,
        "general.alignment": ALIGNMENT,
        "general.quantization_version": 2,
        "general.file_type": 2,  # mostly Q4_0
        **{f"{shape.family}.{key}": value for key, value in family.items()},
        **{f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()},
        "tokenizer.chat_template": _TEMPLATE,
    }
    return {key: _value(value) for key, value in entries.items()}


def _string(text: str) -> bytes:
    raw = text.encode()
    return pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    """A metadata value with its type in front."""
    if isinstance(value, bool):
        return pack("<I?", 7, value)
    if isinstance(value, int):
        return pack("<2I", 4, value)
    if isinstance(value, float):
        return pack("<If", 6, value)
    if isinstance(value, str):
        return pack("<I", 8) + _string(value)
    if isinstance(value[0], int):
        return pack(f"<2IQ{len(value)}i", 9, 5, len(value), *value)
    return pack("<2IQ", 9, 8, len(value)) + b"".join(map(_string, value))
