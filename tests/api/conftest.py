"""A tiny model in assistants, and questions to them."""

import asyncio
from dataclasses import replace
from zlib import crc32

import pytest

from pyweb.api import opening
from pyweb.api.assistant import Assistant
from pyweb.engine import Calibration
from pyweb.prompt import Tokenizer
from pyweb.weights import read_gguf
from tests.gpu.conftest import FIXTURES, CachingDevice
from tests.gpu.dawn import FileSource

VOCABULARY = 227
QUESTION = "What does the keeper of the light do when the fog comes in from the sea ?"
COSTS = Calibration({1: 20.0, 2: 21.0, 4: 22.0, 8: 24.0}, 1)


class Words:
    """A backend with an id a word: encoding hashes, decoding names the id."""

    def encode(self, text):
        return [crc32(word.encode()) % VOCABULARY for word in text.split()]

    def decode(self, ids):
        return "".join(f" w{number}" for number in ids)


@pytest.fixture(scope="session")
def device():
    device = CachingDevice()
    yield device
    device.close()


async def with_vocabulary(read, size):
    """The tiny model carries no vocabulary: gives it one, in which the last word ends a reply."""
    gguf = await read_gguf(read, size)
    words = {"tokenizer.ggml.tokens": [f"w{i}" for i in range(VOCABULARY)], "tokenizer.ggml.eos_token_id": 226}
    return replace(gguf, metadata=gguf.metadata | words)


@pytest.fixture(scope="session")
def open_assistant(device):
    """Loads the tiny model: open_assistant() -> a new assistant."""

    async def tokenizer(gguf):
        return Tokenizer(Words(), Words(), {})

    async def source():
        return FileSource(device, FIXTURES / "tiny_tied.gguf")

    async def same_device():
        return device

    def load(open_device=same_device, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "read_gguf", with_vocabulary)
            return asyncio.run(Assistant.load(open_device, source, tokenizer, **options))

    return load


@pytest.fixture
def assistant(open_assistant):
    return open_assistant()


def ask(assistant, question=QUESTION, **options):
    return asyncio.run(assistant.ask(question, **{"max_tokens": 10, "mode": "fixed:8"} | options))


def talk(chat, question, **options):
    return asyncio.run(chat.ask(question, **{"max_tokens": 8, "mode": "loop"} | options))


def remember(assistant, *arguments):
    asyncio.run(assistant.remember(*arguments))
