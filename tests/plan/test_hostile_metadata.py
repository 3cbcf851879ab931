"""Whatever a file's metadata and tensor table say: a plan or an error of ours, and buffers in proportion to it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.errors import PywebError
from pyweb.kernels.tuning import SOFTWARE
from pyweb.models import decoder_of
from pyweb.plan.buffers import allocate
from pyweb.plan.dispatch import Assembler
from pyweb.plan.step import StepPlan
from pyweb.plan.weights import plan_weights
from pyweb.weights import parse_gguf
from pyweb.weights.gguf import TENSOR_KINDS
from tests.plan.fake import FakeDevice

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAMES = ("tied", "untied", "qwen2_tied", "qwen2_untied")
BLOCKS = {kind.name: kind for kind in TENSOR_KINDS.values()}

_SIZES = st.sampled_from([0, 1, 2, 3, 7, 8, 14, 16, 31, 32, 64, 96, 160, 227, 256, 1 << 31, (1 << 64) - 1])
_SCALARS = st.one_of(_SIZES, st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.booleans(), st.text(max_size=9))
VALUES = st.one_of(_SCALARS, st.lists(_SCALARS, max_size=4))


@pytest.fixture(scope="module")
def files():
    return [parse_gguf((FIXTURES / f"tiny_{name}.gguf").read_bytes()) for name in NAMES]


async def planned(gguf, device):
    decoder = decoder_of(gguf)
    assembler = Assembler(device)
    weights = await plan_weights(device, assembler, gguf, decoder)
    weight_bytes = sum(device.buffers.values())
    buffers = await allocate(device, decoder, SOFTWARE, min(64, decoder.context), True)
    plan = StepPlan(decoder, SOFTWARE, weights, buffers)
    await assembler.program([*plan.forward(2, 1), *plan.head(2)])
    return weight_bytes


def judge(gguf):
    device = FakeDevice()
    try:
        weight_bytes = asyncio.run(planned(gguf, device))
    except PywebError as outcome:
        assert len(str(outcome)) < 600
    else:
        # 256 bytes a tensor of ranges, the stage, and at most 36 runtime bytes for 18 of the file
        assert weight_bytes < 4 * sum(tensor.nbytes for tensor in gguf.tensors.values()) + 1024 * len(gguf.tensors)


@settings(max_examples=300, deadline=None)
@given(edit=st.data())
def test_mutated_metadata_never_surprises(files, edit):
    gguf = edit.draw(st.sampled_from(files))
    keys = sorted(key for key in gguf.metadata if not key.startswith("GGUF."))
    family = gguf.metadata["general.architecture"]
    keys += [f"{family}.{key}" for key in ("vocab_size", "rope.dimension_count", "rope.scaling.type")]
    changes = edit.draw(st.dictionaries(st.sampled_from(keys), VALUES, min_size=1, max_size=3))
    judge(replace(gguf, metadata=gguf.metadata | changes))


@settings(max_examples=200, deadline=None)
@given(edit=st.data())
def test_mutated_tensors_never_surprise(files, edit):
    gguf = edit.draw(st.sampled_from(files))
    tensors = dict(gguf.tensors)
    for _ in range(edit.draw(st.integers(1, 3))):
        name = edit.draw(st.sampled_from(sorted(tensors)))
        kind = BLOCKS[edit.draw(st.sampled_from([tensors[name].kind, *BLOCKS]))]
        shape = tuple(edit.draw(st.lists(st.integers(1, 400), max_size=4)))
        if edit.draw(st.booleans()) or shape and shape[-1] % kind.block:
            shape = tensors[name].shape
        values = 1
        for size in shape:
            values *= size
        if not shape or shape[-1] % kind.block == 0:  # what `parse_gguf` lets pass
            nbytes = -(-values // kind.block) * kind.nbytes
            tensors[name] = replace(tensors[name], shape=shape, kind=kind.name, nbytes=nbytes)
        if edit.draw(st.integers(0, 9)) == 0:
            del tensors[name]
    judge(replace(gguf, tensors=tensors))
