"""Requests that an engine refuses, and what it submits, on a device that computes nothing."""

import asyncio
from pathlib import Path

import pytest

from pyweb.engine import Engine
from pyweb.errors import PromptTooLongError, UsageError
from pyweb.weights import parse_gguf
from tests.plan.fake import FakeDevice

FILE = Path(__file__).resolve().parents[1] / "fixtures" / "tiny_tied.gguf"


class Source:
    size = FILE.stat().st_size


@pytest.fixture(scope="module")
def device():
    return FakeDevice()


@pytest.fixture(scope="module")
def engine(device):
    gguf = parse_gguf(FILE.read_bytes())
    return asyncio.run(Engine.load(device, Source(), gguf, context=64))


def generate(engine, prompt=(1, 2, 3), **options):
    return asyncio.run(engine.generate(prompt, **options))


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"mode": "beam"}, "'beam'"),
        ({"prompt": (1, 227)}, "beyond the model's 227"),
        ({"window": 0}, "window"),
        ({"window": 33}, "33"),
        ({"max_tokens": 0}, "at least one token"),
        ({"prompt": ()}, "empty"),
        ({"stops": range(13)}, "13"),
    ],
)
def test_options_that_make_no_sense(engine, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        generate(engine, **options)


def test_a_prompt_too_long_says_how_long(engine):
    with pytest.raises(PromptTooLongError, match="64 tokens.*64"):
        generate(engine, [1] * 64)


def test_perplexity_needs_two_tokens(engine):
    for ids in ([], [1], [1] * 65):
        with pytest.raises(UsageError, match="2 to 64"):
            asyncio.run(engine.perplexity_sum(ids))


def test_context_is_the_models_where_that_is_less(device):
    gguf = parse_gguf(FILE.read_bytes())
    loaded = asyncio.run(Engine.load(device, Source(), gguf))
    assert loaded.context == loaded.decoder.context == 128


def test_what_loading_leaves(engine, device):
    """The stage is freed; weights and cache are counted as allocated."""
    memory = engine.gpu_bytes
    assert memory["kv_cache"] == 2 * 2 * (64 + 32) * 32 * 2  # layers, keys and values, slots, head, f16
    assert 0 < memory["weights"] < Source.size * 1.1
    assert all(buffer not in device.buffers for buffer in engine._plan.weights.scratch)


def test_progress_reaches_the_end():
    seen = []
    gguf = parse_gguf(FILE.read_bytes())
    device = FakeDevice()
    asyncio.run(Engine.load(device, Source(), gguf, on_progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (Source.size, Source.size)
