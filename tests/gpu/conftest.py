"""One Dawn device for all kernel tests, and the stages that they run on."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pyweb.engine import Engine
from pyweb.kernels.tuning import GPU, SOFTWARE, SUBGROUPS
from pyweb.weights import read_gguf
from pyweb.weights.layout import Q4
from tests.gpu.dawn import DawnDevice, FileSource, dawn_package
from tests.gpu.stage import CONTEXT, Stage, decoder

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


class CachingDevice(DawnDevice):
    """Compiles equal code once: engines and stages of one session share their kernels."""

    def __init__(self):
        super().__init__()
        self._compiled: dict[str, int] = {}

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        missing = {code: label for label, code in shaders if code not in self._compiled}
        handles = await super().compile([(label, code) for code, label in missing.items()])
        self._compiled.update(zip(missing, handles, strict=True))
        return [self._compiled[code] for _, code in shaders]


@pytest.fixture(scope="session")
def device():
    """The project's bridge on a software adapter."""
    if not (os.environ.get("PYWEB_NODE") or shutil.which("node")):
        pytest.fail("Kernel tests run in node, which isn't there: install it, or run `make test`.")
    if not dawn_package().exists():
        pytest.fail(f"Kernel tests need npm's `webgpu`, which {dawn_package()} isn't: run `make test`.")
    device = CachingDevice()
    yield device
    device.close()


# A software adapter's subgroups have four threads.
FEW_LANES = replace(SUBGROUPS, name="four lanes", most_lanes=4)


@pytest.fixture(params=[SOFTWARE, GPU, FEW_LANES], ids=lambda tuning: tuning.name)
def tuning(request, device):
    """The ways to cut the kernels: without barriers, with reductions through workgroup memory, with subgroups."""
    return request.param.within(device.limits)


@pytest.fixture(scope="session")
def stage(device):
    """Makes a stage: stage(tuning, kind=Q4, kv_f16=True, **sizes). Equal ones are made once."""

    @cache
    def make(tuning, kind=Q4, kv_f16=True, **sizes):
        return Stage(device, decoder(**sizes), tuning, kind, kv_f16)

    return make


@pytest.fixture(scope="session")
def engine(device):
    """Loads a tiny model of tests/fixtures: engine(name, tuning, kv_f16=True). Equal ones are loaded once."""

    @cache
    def load(name, tuning, kv_f16=True):
        async def loaded():
            source = FileSource(device, FIXTURES / f"tiny_{name}.gguf")
            gguf = await read_gguf(source.read, source.size)
            return await Engine.load(device, source, gguf, context=CONTEXT, kv_f16=kv_f16, tuning=tuning)

        return asyncio.run(loaded())

    return load


@pytest.fixture(scope="session")
def reference():
    """Ids and logits of a tiny model by PyTorch, as tests/fixtures/make_tiny.py describes them."""
    return cache(lambda name: dict(np.load(FIXTURES / f"tiny_{name}.npz")))
