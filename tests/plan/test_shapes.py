"""Real models' shapes on a device of a GPU's limits, and of the limits that every page gets."""

import asyncio

import pytest

from pyweb.models import decoder_of
from pyweb.plan.dispatch import Assembler
from pyweb.plan.weights import plan_weights
from pyweb.weights import parse_gguf
from pyweb.weights.synthetic import SHAPES, random_file
from tests.plan.fake import DEFAULT_LIMITS, FakeDevice

GPU_LIMITS = {"maxBufferSize": 4 << 30, "maxStorageBufferBindingSize": 2 << 30}


@pytest.mark.parametrize("limits", [GPU_LIMITS, DEFAULT_LIMITS], ids=["gpu", "default"])
@pytest.mark.parametrize("name", SHAPES)
def test_weights_have_room(name, limits):
    made, device = random_file(name), FakeDevice(**limits)
    gguf = parse_gguf(made.header, made.size)
    plan = asyncio.run(plan_weights(device, Assembler(device), gguf, decoder_of(gguf)))
    streamed = sorted(zip(plan.steps[::5], plan.steps[1::5], strict=True))
    assert sum(length for _, length in streamed) == sum(tensor.nbytes for tensor in gguf.tensors.values())
    assert all(first + length <= then for (first, length), (then, _) in zip(streamed, streamed[1:], strict=False))
    assert max(device.buffers.values()) <= limits["maxStorageBufferBindingSize"]
    # 18 bytes of Q4_0 become 20: codes, scale and offset
    matrices = sum(tensor.nbytes for tensor in gguf.tensors.values() if tensor.kind == "Q4_0")
    assert plan.bytes == pytest.approx(matrices * 20 / 18, abs=4 * len(gguf.tensors))
