"""Where a file's tensors go, and what is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pyweb.errors import ModelFileError, UnknownModelError
from pyweb.models import decoder_of
from pyweb.plan import repack as module
from pyweb.plan.dispatch import Assembler
from pyweb.plan.weights import plan_weights
from pyweb.weights import parse_gguf
from pyweb.weights.layout import Q4
from tests.plan.fake import FakeDevice

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture
def tiny():
    return parse_gguf((FIXTURES / "tiny_untied.gguf").read_bytes())


def plan_of(gguf, device=None):
    device = device or FakeDevice()
    return device, asyncio.run(plan_weights(device, Assembler(device), gguf, decoder_of(gguf)))


def sizes_of(matrix):
    return [(part.codes.size, part.scales.size) for part in matrix.slices]


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
    assert (qkv.rows, qkv.columns, qkv.layout) == (4 * 32 + 2 * 2 * 32, 96, Q4)
    assert sizes_of(qkv) == [(256 * 3 * 16, 256 * 3 * 4)]
    assert sizes_of(plan.matrices["head"]) == [(227 * 3 * 32, 227 * 3 * 2 + 2)]  # an odd number of f16: padded
    assert plan.bytes == sum(sum(map(sum, sizes_of(matrix))) for matrix in set(plan.matrices.values()))
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


def test_small_bindings(tiny):
    """Matrices in ranges of rows, and no more bytes staged than a binding takes; every byte is streamed once."""
    device, plan = plan_of(tiny, FakeDevice(maxStorageBufferBindingSize=13_000))
    assert max(size for buffer, size in device.buffers.items() if buffer != plan.scratch[1]) <= 13_000
    assert [part.rows for part in plan.matrices["head"].slices] == [128, 99]
    assert [part.rows for part in plan.matrices["blk.1.gate_up"].slices] == [128, 32]
    assert sum(length for _, length, *_ in steps_of(plan)) == sum(tensor.nbytes for tensor in tiny.tensors.values())


def test_a_missing_tensor(tiny):
    tensors = {name: tensor for name, tensor in tiny.tensors.items() if name != "blk.1.ffn_down.weight"}
    with pytest.raises(ModelFileError, match="blk.1.ffn_down.weight"):
        plan_of(replace(tiny, tensors=tensors))


def test_a_wrong_shape(tiny):
    with pytest.raises(ModelFileError, match="blk.0.attn_q.weight"):
        plan_of(changed(tiny, "blk.0.attn_q.weight", shape=(128, 64)))
    with pytest.raises(ModelFileError, match="blk.0.qkv.*rows"):
        plan_of(changed(tiny, "blk.0.attn_q.weight", shape=(96, 96)))


def test_rows_that_would_share_a_word_or_cannot_be_cut_alike(tiny):
    odd = changed(changed(tiny, "blk.0.attn_q.weight", shape=(127, 96)), "blk.0.attn_k.weight", shape=(65, 96))
    with pytest.raises(ModelFileError, match="blk.0.qkv"):
        plan_of(odd)
    gate = changed(changed(tiny, "blk.0.ffn_gate.weight", shape=(192, 96)), "blk.0.ffn_up.weight", shape=(128, 96))
    with pytest.raises(ModelFileError, match="blk.0.gate_up"):
        plan_of(gate)


def test_an_offset_that_no_write_can_begin_at(tiny):
    tensor = tiny.tensors["blk.1.ffn_up.weight"]
    with pytest.raises(ModelFileError, match="blk.1.ffn_up.weight begins at byte"):
        plan_of(changed(tiny, tensor.name, offset=tensor.offset + 2))


def test_nothing_is_allocated_for_a_file_that_is_wrong(tiny):
    device = FakeDevice()
    with pytest.raises(ModelFileError):
        plan_of(changed(tiny, "output_norm.weight", shape=(128,), nbytes=512), device)
    assert not device.buffers


def test_tensors_of_one_matrix_may_differ_in_kind():
    device, plan = plan_of(parse_gguf((FIXTURES / "tiny_qwen2_tied.gguf").read_bytes()))
    layouts = {name: [str(plan.matrices[f"blk.{layer}.{name}"].layout) for layer in (0, 1)] for name in ("qkv", "down")}
    assert layouts == {"qkv": ["q8 halves offset", "q4 offset"], "down": ["q8 halves", "q4 offset"]}
    assert str(plan.matrices["embedding"].layout) == "q8 halves"
    repacks = [code for label, code in device.shaders if label == "repack"]
    assert len(repacks) == len(set(repacks)) == 6  # kinds and the layouts that they go to


def test_vectors_in_16_bits_become_f32():
    gguf = parse_gguf((FIXTURES / "tiny_qwen2_untied.gguf").read_bytes())
    device, plan = plan_of(gguf)
    assert plan.vectors["final_norm"].size == 64 * 4
    assert plan.vectors["blk.0.qkv_bias"].size == (4 + 2 * 2) * 16 * 4
    (step,) = [step for step in steps_of(plan) if step[0] == gguf.tensors["output_norm.weight"].offset]
    assert step[1] == 128 and step[2] == plan.scratch[0] and step[4]
    assert [label for label, _ in device.shaders].count("widen") == 1


def test_hundreds_of_pieces_have_their_ranges(tiny, monkeypatch):
    """The ranges are read as storage: a buffer that is bound as a uniform may have no more than 64 KiB."""
    monkeypatch.setattr(module, "STAGE", 300)
    device, plan = plan_of(tiny)
    assert device.buffers[plan.scratch[1]] > 65536
    assert all("var<storage, read> range" in code for label, code in device.shaders if label == "repack")


def test_a_kind_that_has_no_layout(tiny):
    with pytest.raises(UnknownModelError, match="blk.0.attn_output.weight.*IQ4_XS"):
        plan_of(changed(tiny, "blk.0.attn_output.weight", kind="IQ4_XS"))


def test_a_norm_in_a_type_or_of_a_size_that_makes_no_sense(tiny):
    with pytest.raises(ModelFileError, match="output_norm.weight.*Q8_0"):
        plan_of(changed(tiny, "output_norm.weight", kind="Q8_0"))
    with pytest.raises(ModelFileError, match="output_norm.weight"):
        plan_of(changed(tiny, "output_norm.weight", shape=(128,), nbytes=512))
