"""The comparison of widths at load: what it finds on a broken kernel, and that replies stay right."""

import asyncio
from dataclasses import replace

import pytest

from pyweb.engine import Engine
from pyweb.engine.exactness import Exactness
from pyweb.errors import LimitError
from pyweb.kernels.tuning import SOFTWARE
from pyweb.plan import dispatch
from pyweb.weights import read_gguf
from tests.gpu.conftest import FIXTURES
from tests.gpu.dawn import FileSource

STORE = "fn store(row: u32, t: u32, sum: f32) {"
# Keys and values are kept as f16, all that a software adapter compares: less than a thousandth may vanish in them.
FAULT, ULP = 1.001, 1.0000002


@pytest.fixture(scope="session")
def prompt(reference):
    return reference("tied")["ids"].tolist()


def load(device):
    async def loaded():
        source = FileSource(device, FIXTURES / "tiny_tied.gguf")
        gguf = await read_gguf(source.read, source.size)
        return await Engine.load(device, source, gguf, context=96, tuning=SOFTWARE)

    return asyncio.run(loaded())


def damage(monkeypatch, wrong, factor=FAULT):
    """Multiplies what `matvec` adds up by `factor` where `wrong(values)`."""
    compose = dispatch.compose

    def broken(role, values, limits):
        shader = compose(role, values, limits)
        if role != "matvec" or not wrong(values):
            return shader
        assert STORE in shader.code
        inexact = f"fn store(row: u32, t: u32, exact: f32) {{\n  let sum = exact * {factor};"
        return replace(shader, code=shader.code.replace(STORE, inexact))

    monkeypatch.setattr(dispatch, "compose", broken)


@pytest.fixture
def broken(device, monkeypatch):
    """An engine whose steps of several tokens give other sums than single ones."""
    damage(monkeypatch, lambda values: values["TOKENS"] > 1)
    return load(device)


def generate(engine, prompt, **options):
    return asyncio.run(engine.generate(prompt, **{"max_tokens": 12} | options))


@pytest.fixture(scope="session")
def plain(engine, prompt):
    return generate(engine("tied", SOFTWARE), prompt, mode="greedy").ids


def prefill_widths(engine, monkeypatch):
    """Collects the widths of the prefills to come."""
    widths, prefill = set(), engine._prefill

    def seen(count, width, *rest, **options):
        widths.add(width)
        return prefill(count, width, *rest, **options)

    monkeypatch.setattr(engine, "_prefill", seen)
    return widths


def allowed(engine, widths):
    return asyncio.run(engine._exactness.allowed(widths))


def test_nothing_to_warn_of(engine, monkeypatch, prompt, plain):
    loaded = engine("tied", SOFTWARE)
    asyncio.run(loaded.compile())
    assert allowed(loaded, (1, 2, 4, 8, 16, 32)) == (1, 2, 4, 8, 16, 32)
    assert loaded.warning == ""
    widths = prefill_widths(loaded, monkeypatch)
    assert generate(loaded, prompt).ids == plain
    assert widths == {32}


@pytest.mark.parametrize("mode", ["loop", "fixed:8", "adaptive"])
def test_a_broken_kernel_costs_speed_alone(broken, monkeypatch, prompt, plain, mode):
    asyncio.run(broken.compile())
    assert broken.warning.startswith("On this device steps of 32 tokens") and broken.warning.endswith(".")
    assert allowed(broken, (1, 32)) == (1,)
    widths = prefill_widths(broken, monkeypatch)
    reply = generate(broken, prompt, mode=mode, remembered=plain)
    assert reply.ids == plain
    assert reply.widths == {1: 12} and widths == {1}
    if mode == "fixed:8":
        assert "32, 8" in broken.warning or "8, 32" in broken.warning


def test_the_whole_model_shows_the_last_bit(device, monkeypatch, prompt):
    damage(monkeypatch, lambda values: values["TOKENS"] > 1, ULP)
    assert asyncio.run(load(device).compare(prompt, (2, 8))) == {2: False, 8: False}


def test_a_fault_of_one_width_alone_is_found(device, monkeypatch, prompt, plain):
    """The tile of 2 tokens belongs to width 2: the wider ones stay exact until it is asked for."""
    damage(monkeypatch, lambda values: values["TOKENS"] == 2)
    engine = load(device)
    assert allowed(engine, (8, 32)) == (8, 32) and not engine.warning
    assert generate(engine, prompt, mode="fixed:8", remembered=plain).widths.keys() == {8}
    assert generate(engine, prompt, mode="fixed:2", remembered=plain).widths == {1: 12}
    assert "steps of 2 tokens" in engine.warning
    assert allowed(engine, (8, 32)) == (1,)


def test_each_width_is_checked_once(device, monkeypatch):
    engine = load(device)
    checked, check = [], Exactness._check

    async def seen(self, widths):
        checked.extend(widths)
        await check(self, widths)

    monkeypatch.setattr(Exactness, "_check", seen)
    for widths in ((1,), (4,), (4, 8), (8, 1)):
        assert allowed(engine, widths) == widths
    assert checked == [4, 8]


def test_two_checks_at_once(device):
    engine = load(device)

    async def both():
        check = engine._exactness.allowed
        return await asyncio.gather(check((8,)), check((1, 2, 4)))

    assert asyncio.run(both()) == [(8,), (1, 2, 4)] and not engine.warning


def test_a_width_that_does_not_compile_leaves_the_others_right(device, monkeypatch, prompt):
    compose = dispatch.compose

    def failing(role, values, limits):
        if values.get("TOKENS") == 2:
            raise LimitError("Too wide.")
        return compose(role, values, limits)

    monkeypatch.setattr(dispatch, "compose", failing)
    engine = load(device)
    with pytest.raises(LimitError, match="Too wide"):
        allowed(engine, (2, 8))
    assert allowed(engine, (8,)) == (8,) and not engine.warning
    assert generate(engine, prompt, mode="fixed:8").ids == generate(engine, prompt, mode="loop").ids
