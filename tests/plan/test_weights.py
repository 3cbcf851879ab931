"""Where a file's tensors go, and what is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.models import decoder_of
from pyweb.plan import weights as module
from pyweb.plan.dispatch import Assembler
from pyweb.plan.weights import plan_weights
from pyweb.weights import parse_gguf
from tests.plan.fake import FakeDevice

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture
def tiny():
    return parse_gguf((FIXTURES / "tiny_untied.gguf").read_bytes())


def plan_of(gguf, device=None):
    device = device or FakeDevice()
    return device, asyncio.run(plan_weights(device, Assembler(device), gguf, decoder_of(gguf)))


def steps_of(plan):
    numbers = plan.steps
    return [tuple(numbers[i : i + 5]) for i in range(0, len(numbers), 5)]


def changed(gguf, name, **fields):
    return replace(gguf, tensors=gguf.tensors | {name: replace(gguf.tensors[name], **fields)})


def test_every_byte_of_every_tensor_is_streamed_once_in_file_order(tiny):
    _, plan = plan_of(tiny)
    steps = steps_of(plan)
    assert [step[0] for step in steps] == sorted(step[0] for step in steps)
    streamed = sorted((offset, length) for offset, length, *_ in steps)
    assert streamed == sorted((tensor.offset, tensor.nbytes) for tensor in tiny.tensors.values())


def test_sizes_on_the_gpu(tiny):
    device, plan = plan_of(tiny)
    qkv = plan.matrices["blk.0.qkv"]
    assert (qkv.rows, qkv.columns, qkv.layout.name) == (4 * 32 + 2 * 2 * 32, 96, "q4")
    assert (qkv.codes.size, qkv.scales.size) == (256 * 3 * 16, 256 * 3 * 4)
    head = plan.matrices["head"]
    assert (head.codes.size, head.scales.size) == (227 * 3 * 32, 227 * 3 * 2 + 2)  # an odd number of f16: padded
    assert plan.bytes == sum(m.codes.size + m.scales.size for m in set(plan.matrices.values()))
    assert all(buffer in device.buffers for buffer in plan.scratch)


def test_a_tied_head_takes_no_room():
    gguf = parse_gguf((FIXTURES / "tiny_tied.gguf").read_bytes())
    _, plan = plan_of(gguf)
    assert plan.matrices["head"] is plan.matrices["embedding"]


def test_large_tensors_come_in_pieces_of_whole_rows(tiny, monkeypatch):
    """An even number of rows each, so that two 8-bit scales never straddle pieces."""
    monkeypatch.setattr(module, "STAGE", 1000)
    device, plan = plan_of(tiny)
    head = tiny.tensors["output.weight"]
    pieces = [step for step in steps_of(plan) if head.offset <= step[0] < head.offset + head.nbytes]
    row = 96 // 32 * 34
    assert [length for _, length, *_ in pieces] == [8 * row] * 28 + [3 * row]
    stage, ranges = plan.scratch
    assert device.buffers[stage] >= max(length for _, length, buffer, *_ in steps_of(plan) if buffer == stage)
    programs = [device.programs[program] for *_, program in pieces]
    assert len({program[1] for program in programs}) == len(pieces)  # a range of its own each


def test_a_missing_tensor(tiny):
    tensors = {name: tensor for name, tensor in tiny.tensors.items() if name != "blk.1.ffn_down.weight"}
    with pytest.raises(ModelFileError, match="blk.1.ffn_down.weight"):
        plan_of(replace(tiny, tensors=tensors))


def test_a_wrong_shape(tiny):
    with pytest.raises(ModelFileError, match="blk.0.attn_q.weight"):
        plan_of(changed(tiny, "blk.0.attn_q.weight", shape=(128, 64)))
    with pytest.raises(ModelFileError, match="blk.0.qkv.*rows"):
        plan_of(changed(tiny, "blk.0.attn_q.weight", shape=(96, 96)))


def test_a_kind_that_has_no_layout(tiny):
    with pytest.raises(UnknownModelError, match="blk.0.attn_output.weight.*IQ4_XS"):
        plan_of(changed(tiny, "blk.0.attn_output.weight", kind="IQ4_XS"))


def test_a_norm_that_is_not_f32(tiny):
    with pytest.raises(ModelFileError, match="output_norm.weight"):
        plan_of(changed(tiny, "output_norm.weight", kind="F16"))
    with pytest.raises(ModelFileError, match="output_norm.weight"):
        plan_of(changed(tiny, "output_norm.weight", shape=(128,), nbytes=512))
