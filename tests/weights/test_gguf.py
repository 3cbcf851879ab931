import asyncio
import io
import struct
import time
import tracemalloc

import gguf as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.errors import ModelFileError
from pyweb.weights.gguf import GGUF, TENSOR_KINDS, NeedMoreBytes, TensorInfo, parse_gguf, read_gguf


def write_small(path):
    """A GGUF with every kind of metadata value and a few tensors, by the reference writer."""
    writer = reference.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_uint8("a.u8", 200)
    writer.add_int8("a.i8", -3)
    writer.add_uint16("a.u16", 60000)
    writer.add_int16("a.i16", -300)
    writer.add_uint32("a.u32", 4_000_000_000)
    writer.add_int32("a.i32", -70000)
    writer.add_float32("a.f32", 0.5)
    writer.add_uint64("a.u64", 1 << 63)
    writer.add_int64("a.i64", -(1 << 62))
    writer.add_float64("a.f64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_token_list(["<s>", "é", "▁the", "", "🙂"])
    writer.add_token_types([3, 1, 1, 1, 1])
    writer.add_token_scores([0.0, -1.0, -2.0, -3.0, -4.0])
    writer.add_array("a.bools", [True, False])
    writer.add_array("a.nested", [[1, 2], [3]])
    writer.add_tensor("norm", np.arange(4, dtype=np.float32))
    writer.add_tensor("matrix", np.ones((3, 8), dtype=np.float16))
    packed = reference.quants.quantize(np.ones((2, 64), np.float32), reference.GGMLQuantizationType.Q4_1)
    writer.add_tensor("packed", packed, raw_dtype=reference.GGMLQuantizationType.Q4_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write_small(path)
    return path


@pytest.fixture(scope="module")
def data(small):
    return small.read_bytes()


def header(version=3, tensors=0, entries=b"", entry_count=0):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entry_count) + entries


def text(value: bytes):
    return struct.pack("<Q", len(value)) + value


def tensor(name=b"t", dims=(32,), kind=0, offset=0):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def padded(head, nbytes):
    return head + bytes(-len(head) % 32 + nbytes)


def refused(data, file_size=-1):
    with pytest.raises(ModelFileError) as caught:
        parse_gguf(data, len(data) if file_size == -1 else file_size)
    assert caught.value.sentence.endswith(".")
    return caught.value.sentence


def test_metadata_equals_what_was_written(data):
    metadata = parse_gguf(data, len(data)).metadata
    assert metadata["general.architecture"] == "llama"
    assert (metadata["a.u8"], metadata["a.i8"]) == (200, -3)
    assert (metadata["a.u16"], metadata["a.i16"]) == (60000, -300)
    assert (metadata["a.u32"], metadata["a.i32"]) == (4_000_000_000, -70000)
    assert (metadata["a.u64"], metadata["a.i64"]) == (1 << 63, -(1 << 62))
    assert (metadata["a.f32"], metadata["a.f64"], metadata["a.bool"]) == (0.5, 0.1, True)
    assert metadata["tokenizer.ggml.tokens"] == ["<s>", "é", "▁the", "", "🙂"]
    assert metadata["tokenizer.ggml.token_type"] == [3, 1, 1, 1, 1]
    assert metadata["a.bools"] == [True, False]
    assert metadata["a.nested"] == [[1, 2], [3]]


def test_tensors_equal_the_reference_reader(small, data):
    tensors = parse_gguf(data, len(data)).tensors
    assert list(tensors.values()) == as_the_reference_reads(small)
    assert tensors["matrix"].shape == (3, 8)
    assert tensors["packed"].nbytes == 2 * 2 * 20


def as_the_reference_reads(path):
    return [
        TensorInfo(
            t.name,
            tuple(int(n) for n in t.shape[::-1]),
            t.tensor_type.name,
            int(t.data_offset),
            int(t.n_bytes),
        )
        for t in reference.GGUFReader(path).tensors
    ]


def test_every_kind_of_the_reference_is_known_and_equal():
    sizes = {int(kind): (kind.name, *size) for kind, size in reference.GGML_QUANT_SIZES.items()}
    for number, entry in sizes.items():
        assert tuple(TENSOR_KINDS[number]) == entry


def test_a_memoryview_will_do(data):
    assert parse_gguf(memoryview(data), len(data)) == parse_gguf(data)


def test_version_2_is_read(data):
    old = data[:4] + struct.pack("<I", 2) + data[8:]
    assert parse_gguf(old, len(old)).version == 2


@pytest.mark.parametrize("size", [0, 3, 4, 10, 24, 100])
def test_a_short_beginning_asks_for_more(data, size):
    with pytest.raises(NeedMoreBytes) as more:
        parse_gguf(data[:size], len(data))
    assert size < more.value.count <= len(data)


def test_following_the_requests_reaches_the_end(data):
    size = 0
    while True:
        try:
            assert parse_gguf(data[:size], len(data)) == parse_gguf(data)
            break
        except NeedMoreBytes as more:
            assert more.count > size
            size = more.count


def test_read_gguf_reads_growing_ranges():
    entries = text(b"big") + struct.pack("<I", 8) + text(b"x" * 600_000)
    data = header(entries=entries, entry_count=1)
    reads = []

    async def read(offset, length):
        reads.append((offset, length))
        return data[offset : offset + length]

    assert len(asyncio.run(read_gguf(read, len(data))).metadata["big"]) == 600_000
    assert reads == [(0, 262144), (262144, len(data) - 262144)]


def test_read_gguf_notices_a_short_read(data):
    async def read(offset, length):
        return data[offset : offset + length // 2]

    with pytest.raises(ModelFileError, match="were expected"):
        asyncio.run(read_gguf(read, len(data)))


def test_bad_beginnings_each_have_their_sentence():
    assert "doesn't begin with the letters GGUF" in refused(b"<!doctype html>" + bytes(64))
    assert "version 1;" in refused(header(version=1))
    assert "version 0;" in refused(header(version=0))
    assert "big-endian" in refused(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    assert "cut short" in refused(b"GGUF\3\0\0")


def test_counts_that_cannot_be_right():
    assert "tensors" in refused(header(tensors=1 << 60))
    assert "metadata entries" in refused(header(entry_count=1 << 40))
    assert "cut short" in refused(header(tensors=1000))
    long_string = header(entries=text(b"k") + struct.pack("<IQ", 8, 1 << 62), entry_count=1)
    assert "cut short" in refused(long_string)
    assert "longer than" in refused(long_string, None)
    for kind in (0, 8, 9, 10):
        long_array = text(b"k") + struct.pack("<IIQ", 9, kind, 1 << 61)
        assert "values in 'k'" in refused(header(entries=long_array, entry_count=1))


def test_bad_metadata():
    one = text(b"k") + struct.pack("<IB", 7, 1)
    assert "twice" in refused(header(entries=one * 2, entry_count=2))
    assert "not UTF-8" in refused(header(entries=text(b"\xff") + struct.pack("<IQ", 0, 1), entry_count=1))
    assert "unknown type 13" in refused(header(entries=text(b"k") + struct.pack("<IQ", 13, 1), entry_count=1))
    nested = text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50
    assert "too deeply" in refused(header(entries=nested, entry_count=1))
    unknown = text(b"k") + struct.pack("<IIQ", 9, 99, 1) + bytes(8)
    assert "unknown type 99" in refused(header(entries=unknown, entry_count=1))


@pytest.mark.parametrize("alignment", [struct.pack("<II", 4, 0), struct.pack("<II", 4, 24), b"\x07\0\0\0\1"])
def test_a_bad_alignment(alignment):
    entry = text(b"general.alignment") + alignment
    assert "alignment" in refused(header(entries=entry, entry_count=1))


def test_bad_tensors():
    def of(*tensors, nbytes=256):
        return refused(padded(header(tensors=len(tensors)) + b"".join(tensors), nbytes))

    assert "'t' twice" in of(tensor(), tensor(offset=128))
    assert "overlap" in of(tensor(b"a"), tensor(b"b", offset=96))
    assert "no multiple of the alignment" in of(tensor(offset=16))
    assert "unknown weight type 4" in of(tensor(kind=4))
    assert "unknown weight type 77" in of(tensor(kind=77))
    assert "no multiple of Q8_0's 32" in of(tensor(dims=(33, 2), kind=8))
    assert "ends at byte" in of(tensor(dims=(65,)))
    assert "ends at byte" in of(tensor(offset=1 << 63))
    assert "impossible shape" in of(tensor(dims=(0, 3)))
    assert "impossible shape" in of(tensor(dims=(1 << 40, 1 << 40)))
    assert "5 dimensions" in of(tensor(dims=(1,) * 5))
    assert "name of a tensor is not UTF-8" in of(tensor(b"\xc3"))


def test_a_name_in_an_error_is_never_a_page_long():
    assert len(refused(padded(header(tensors=1) + tensor(b"n" * 5000, kind=4), 0))) < 200


def test_without_a_file_size_only_the_header_is_judged():
    data = header(tensors=1) + tensor(dims=(1 << 20,))
    assert parse_gguf(data).tensors["t"].nbytes == 4 << 20


def judge(data, file_size):
    """Any bytes give one of three outcomes, quickly and without a large allocation."""
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        assert isinstance(parse_gguf(data, file_size), GGUF)
    except (ModelFileError, NeedMoreBytes) as outcome:
        assert len(str(outcome)) < 400
    taken = time.perf_counter() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 2 and peak < (1 << 20) + 100 * len(data)


@settings(max_examples=300, deadline=None)
@given(edit=st.data())
def test_mutated_files_never_surprise(data, edit):
    damaged = bytearray(data[: edit.draw(st.integers(0, len(data)))])
    for _ in range(edit.draw(st.integers(0, 4))):
        place = edit.draw(st.integers(0, len(damaged)))
        damaged[place : place + edit.draw(st.integers(0, 8))] = edit.draw(st.binary(max_size=8))
    judge(bytes(damaged), edit.draw(st.sampled_from([None, len(damaged), 1 << 40])))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_random_bytes_after_the_magic_never_surprise(tail, sized):
    data = b"GGUF\3\0\0\0" + tail
    judge(data, len(data) if sized else None)


def test_a_vocabulary_of_100_000_is_read_at_once():
    stream = io.BytesIO()
    for number in range(100_000):
        stream.write(text(b"token %d" % number))
    entries = text(b"v") + struct.pack("<IIQ", 9, 8, 100_000) + stream.getvalue()
    data = header(entries=entries, entry_count=1)
    begin = time.perf_counter()
    assert parse_gguf(data, len(data)).metadata["v"][-1] == "token 99999"
    assert time.perf_counter() - begin < 1


def test_the_embedded_model_equals_the_reference_reader(embedded_model):
    with open(embedded_model, "rb") as file:
        model = parse_gguf(file.read(4 << 20), embedded_model.stat().st_size)
    assert list(model.tensors.values()) == as_the_reference_reads(embedded_model)
    assert len(model.metadata["tokenizer.ggml.merges"]) == 48900
