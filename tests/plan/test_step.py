"""What a step dispatches: how much, over which grids, within which limits."""

import asyncio
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pyweb.errors import LimitError
from pyweb.kernels.compose import compose
from pyweb.kernels.tuning import GPU, SOFTWARE, SUBGROUPS, WIDTHS, Cut, choose_tuning
from pyweb.models import Decoder, Matrix, Vector
from pyweb.plan.buffers import allocate, rope_table
from pyweb.plan.dispatch import Assembler, Binding, Kernel
from pyweb.plan.packed import allocate_matrix
from pyweb.plan.step import StepPlan
from pyweb.plan.weights import WeightPlan
from pyweb.weights.layout import Q4, Q8
from tests.plan.fake import DEFAULT_LIMITS, FakeDevice

SIZES = ("layers", "hidden", "heads", "kv_heads", "head_size", "feed_forward", "vocabulary")
SMOLLM2 = dict(zip(SIZES, (30, 576, 9, 3, 64, 1536, 49152), strict=True))
QWEN2_1B = dict(zip(SIZES, (28, 1536, 12, 2, 128, 8960, 151936), strict=True))
QWEN2_7B = dict(zip(SIZES, (28, 3584, 28, 4, 128, 18944, 152064), strict=True))


def decoder(bias=False, **sizes):
    hidden, attention = sizes["hidden"], sizes["heads"] * sizes["head_size"]
    qkv = attention + 2 * sizes["kv_heads"] * sizes["head_size"]
    up, vocabulary = sizes["feed_forward"], sizes["vocabulary"]
    shapes = {"qkv": (qkv, hidden), "output": (hidden, attention), "gate_up": (2 * up, hidden), "down": (hidden, up)}

    def matrices(layer):
        return {
            name: Matrix(f"{layer}.{name}", (name, "up")[: 1 + (name == "gate_up")], *shape, cut=name != "qkv")
            for name, shape in shapes.items()
        }

    def vectors(layer):
        names = ("attn_norm", "ffn_norm")
        vectors = {name: Vector(f"{layer}.{name}", (name,), hidden) for name in names}
        return vectors | ({"qkv_bias": Vector(f"{layer}.qkv_bias", ("bias",), qkv)} if bias else {})

    return Decoder(
        architecture="llama",
        context=4096,
        rope_base=10000.0,
        rope_pairs="adjacent",
        norm_eps=1e-5,
        embedding=Matrix("embedding", ("embedding",), vocabulary, hidden),
        head=Matrix("head", ("head",), vocabulary, hidden),
        final_norm=Vector("final_norm", ("final_norm",), hidden),
        matrices=tuple(map(matrices, range(sizes["layers"]))),
        vectors=tuple(map(vectors, range(sizes["layers"]))),
        **sizes,
    )


def planned(sizes, tuning, context=4096, bias=False, **limits):
    """A plan on a fake device that lets any size pass but those of `limits`."""
    device = FakeDevice(**({"maxStorageBufferBindingSize": 1 << 40, "maxBufferSize": 1 << 40} | limits))
    model, weights = decoder(bias, **sizes), WeightPlan()

    def binding(size):
        return Binding(asyncio.run(device.buffer(size)), size)

    for matrix in (model.embedding, model.head, *(m for layer in model.matrices for m in layer.values())):
        kind = Q8 if matrix in (model.embedding, model.head) else Q4
        weights.matrices[matrix.name] = asyncio.run(allocate_matrix(device, matrix, kind))
    for vector in (model.final_norm, *(v for layer in model.vectors for v in layer.values())):
        weights.vectors[vector.name] = binding(vector.size * 4)
    return device, StepPlan(model, tuning, weights, asyncio.run(allocate(device, model, tuning, context, True)))


def everything(plan, width):
    """The dispatches of all that a step of `width` can be."""
    forward = plan.forward(width, plan.chunks(plan.buffers.slots))
    return [*forward, *plan.head(width), *plan.choose(width), plan.likelihood(width), plan.prefill_step(width)]


THREADS = "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX"


@pytest.fixture(params=[SOFTWARE, GPU, SUBGROUPS], ids=lambda tuning: tuning.name)
def tuning(request):
    return request.param


@pytest.mark.parametrize("threads", [256, 1024])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("sizes, bias", [(SMOLLM2, False), (QWEN2_7B, True)], ids=["smollm2", "qwen2-7b"])
def test_every_kernel_keeps_to_the_default_limits(tuning, sizes, bias, width, threads):
    """Eight storage buffers, 16 KiB of workgroup memory, 65,535 workgroups a dimension; threads as they are granted."""
    limits = DEFAULT_LIMITS | dict.fromkeys(THREADS, threads)
    _, plan = planned(sizes | {"layers": 1}, tuning.within(limits), bias=bias)
    for dispatch in everything(plan, width):
        shader = compose(dispatch.kernel.role, dict(dispatch.kernel.values), limits)
        assert shader.storage_buffers <= 8
        assert len(dispatch.bindings) == shader.code.count("@binding(")
        assert 1 <= min(dispatch.grid) and max(dispatch.grid) <= 65535


@pytest.mark.parametrize("width", WIDTHS)
def test_dispatches_of_a_step(tuning, width):
    """README and docs speak of six dispatches a layer; a kernel more costs every token."""
    _, plan = planned(SMOLLM2, tuning)
    layer = Counter(qkv=1, attention=1, attention_merge=1, gate_up=1)
    layer += Counter(norm_quantize=2, matvec=2, quantize=1) if tuning.barrier_free else Counter(residual=2)
    expected = Counter(embed=1) + Counter({role: 30 * count for role, count in layer.items()})
    assert Counter(dispatch.kernel.role for dispatch in plan.forward(width, 1)) == expected
    norm = ["norm_quantize"] if tuning.barrier_free else []
    assert [dispatch.kernel.role for dispatch in plan.head(width)] == [*norm, "matvec"]
    assert [dispatch.kernel.role for dispatch in plan.choose(width)] == ["choose", "accept"]


def test_layers_share_their_kernels(tuning):
    """30 layers compile what one does."""
    _, plan = planned(SMOLLM2, tuning)
    kernels = {dispatch.kernel for dispatch in plan.forward(4, 2)}
    roles = Counter(kernel.role for kernel in kernels)
    assert roles.pop("matvec" if tuning.barrier_free else "residual") == 2  # output and down projection
    assert set(roles.values()) == {1}


def covered(dispatch, count):
    """Rows that a product's grid reaches in x, tokens that it reaches in y."""
    values = dict(dispatch.kernel.values)
    groups = dispatch.grid[0] * values["THREADS"] // values["LANES"]
    return groups * count, dispatch.grid[1] * values["TOKENS"]


@pytest.mark.parametrize("width", WIDTHS)
def test_grids_reach_everything_and_hardly_more(tuning, width):
    _, plan = planned(SMOLLM2 | {"vocabulary": 49157}, tuning)
    for dispatch in everything(plan, width):
        values = dict(dispatch.kernel.values)
        if dispatch.kernel.role == "matvec":
            rows, tokens = covered(dispatch, values["ROWS"])
            assert values["M"] <= rows < values["M"] + values["THREADS"] * values["ROWS"]
            assert tokens == width
        if dispatch.kernel.role == "qkv":
            rows, tokens = covered(dispatch, values["ROWS"])
            assert 960 <= rows < 960 + values["ROWS"] * values["THREADS"] and tokens == width
        if dispatch.kernel.role in ("residual", "gate_up") and not tuning.barrier_free:
            rounds = 32 * (2 if dispatch.kernel.role == "gate_up" else 1)
            assert rounds % (values["ROWS"] * values["THREADS"] // values["LANES"]) == 0
            assert dispatch.grid[0] * 32 == values["M"] and dispatch.grid[1] * values["TOKENS"] == width


def test_no_buffer_is_read_and_written_in_one_dispatch(tuning):
    """WebGPU forbids it."""
    _, plan = planned(SMOLLM2, tuning)
    for dispatch in everything(plan, 4):
        buffers = [binding.buffer for binding in dispatch.bindings]
        assert len(buffers) == len(set(buffers))


def test_attention_grid(tuning):
    _, plan = planned(SMOLLM2, tuning, context=4096)
    bounds = {length: plan.chunks(length) for length in (1, 32, 33, 64, 65, 1000, 4096, 4128)}
    assert bounds == {1: 1, 32: 1, 33: 2, 64: 2, 65: 4, 1000: 32, 4096: 128, 4128: 129}
    for chunks in (1, 8, 129):
        (dispatch,) = [d for d in plan.forward(2, chunks) if d.kernel.role == "attention"][:1]
        values = dict(dispatch.kernel.values)
        reached = dispatch.grid[0] * values["THREADS"] if tuning.barrier_free else dispatch.grid[0] * dispatch.grid[1]
        assert 3 * chunks <= reached < 3 * chunks + values["THREADS"]


@pytest.mark.parametrize("sizes", [SMOLLM2, QWEN2_1B], ids=["SmolLM2", "Qwen2 1.5B"])
def test_orders_of_addition_do_not_depend_on_the_width(tuning, sizes):
    """Lanes of a product and chunks of attention are the same at every width."""
    _, plan = planned(sizes, tuning)

    def numbers(width):
        keys = ("LANES", "CHUNK", "K", "NORM")
        return [[dict(d.kernel.values).get(key) for key in keys] for d in plan.forward(width, 4)]

    assert all(numbers(width) == numbers(1) for width in WIDTHS)


def test_a_matrix_over_the_limit_is_cut_into_ranges_of_rows(tuning):
    """Each is a buffer of its own, since buffers are limited too; a product is a dispatch for each."""
    limit = 20_000_000
    _, whole = planned(SMOLLM2, tuning)
    device, plan = planned(SMOLLM2, tuning, context=64, maxStorageBufferBindingSize=limit)
    assert max(device.buffers.values()) <= limit
    head = plan.weights.matrices["head"]
    assert [(part.first, part.rows) for part in head.slices] == [(0, 34720), (34720, 14432)]
    assert head.bytes == whole.weights.matrices["head"].bytes
    roles = Counter(d.kernel.role for d in plan.forward(1, 1)) - Counter(d.kernel.role for d in whole.forward(1, 1))
    assert roles == Counter(embed=1)
    for products in (plan.head(2)[-2:], whole.head(2)[-1:]):
        ranges = [[dict(d.kernel.values)[name] for name in ("FIRST", "COUNT", "M")] for d in products]
        assert sum(count for _, count, _ in ranges) == 49152 == ranges[0][2]
        for dispatch, (_, count, _) in zip(products, ranges, strict=True):
            assert count <= covered(dispatch, dict(dispatch.kernel.values)["ROWS"])[0] < count + 256


def test_gate_and_up_are_cut_alike(tuning):
    _, plan = planned(SMOLLM2 | {"layers": 1, "vocabulary": 256}, tuning, context=32, maxBufferSize=400_000)
    matrix = plan.weights.matrices["0.gate_up"]
    assert [(part.first, part.rows) for part in matrix.slices] == [(0, 672), (672, 672), (1344, 192)]
    assert {part.codes.size // part.rows for part in matrix.slices} == {2 * 576 // 2}
    products = [dict(d.kernel.values) for d in plan.forward(4, 1) if d.kernel.role == "gate_up"]
    assert [(values["FIRST"], values["COUNT"], values["M"]) for values in products] == [
        (0, 672, 1536),
        (672, 672, 1536),
        (1344, 192, 1536),
    ]


def test_what_can_not_be_cut_is_refused(tuning):
    with pytest.raises(LimitError, match="0.qkv has 960 rows, the device binds 868"):
        planned(SMOLLM2, tuning, context=32, maxStorageBufferBindingSize=250_000)
    with pytest.raises(LimitError, match="rope takes 1056768 bytes, the device binds 1000000 at most"):
        planned(SMOLLM2 | {"vocabulary": 256}, tuning, maxBufferSize=1_000_000)


def test_a_binding_over_the_limit_names_kernel_asked_and_available():
    device, plan = planned(SMOLLM2, SOFTWARE)
    device.limits["maxStorageBufferBindingSize"] = 20_000_000
    with pytest.raises(LimitError, match="matvec.*28311552.*maxStorageBufferBindingSize.*20000000"):
        asyncio.run(Assembler(device).program(plan.head(1)))


def test_a_grid_over_the_limit_names_kernel_asked_and_available():
    device, plan = planned(SMOLLM2, GPU, maxComputeWorkgroupsPerDimension=100)
    with pytest.raises(LimitError, match=r"matvec.*768, 1, 1.*maxComputeWorkgroupsPerDimension.*100"):
        asyncio.run(Assembler(device).program(plan.head(1)))


def test_programs_compile_and_bind_once():
    device, plan = planned(SMOLLM2, SOFTWARE)
    assembler = Assembler(device)
    first = asyncio.run(assembler.program(plan.forward(1, 1)))
    shaders, bound = len(device.shaders), len(device.bound)
    again = asyncio.run(assembler.program([*plan.forward(1, 1), *plan.forward(1, 2)]))
    assert len(device.shaders) == shaders
    assert len(device.bound) == bound
    assert device.programs[again][: len(device.programs[first])] == device.programs[first]
    assert len(device.programs[first]) == 5 * len(plan.forward(1, 1))


def test_a_kernel_is_its_numbers():
    assert Kernel.of("a", X=1, Y=2) == Kernel.of("a", Y=2, X=1) != Kernel.of("a", X=1)


def test_rope_table():
    model = replace(decoder(**SMOLLM2 | {"layers": 1}), rope_base=100000.0)
    table = np.frombuffer(rope_table(model, 50), np.float32).reshape(50, 32, 2)
    angle = 37 * 100000.0 ** (-2 * 5 / 64)
    np.testing.assert_allclose(table[37, 5], [np.cos(angle), np.sin(angle)], atol=1e-7)
    assert table[0].tolist() == [[1, 0]] * 32


@pytest.mark.parametrize(
    "info, tuning",
    [
        ({"architecture": "swiftshader", "vendor": "google"}, SOFTWARE),
        ({"description": "llvmpipe (LLVM 19.1.7, 256 bits)"}, SOFTWARE),
        ({"description": "Microsoft Basic Render Driver"}, SOFTWARE),
        ({"vendor": "nvidia", "architecture": "hopper"}, GPU),
        ({}, GPU),
    ],
)
def test_choose_tuning(info, tuning):
    assert choose_tuning(info) is tuning


def test_fewer_threads_have_the_same_work():
    """A workgroup has the rows that it had, of which each thread takes more."""
    used = SUBGROUPS.with_cut("residual", 1, Cut(1024, 1, 1, 2))
    for granted, cut in ((1024, (1024, 1, 1, 2)), (900, (512, 2, 1, 4)), (256, (256, 4, 1, 4)), (128, (128, 8, 1, 4))):
        within = used.within(DEFAULT_LIMITS | dict.fromkeys(THREADS, 1024) | {THREADS[1]: granted})
        assert within.cut("residual", 1, 896) == Cut(*cut)
        assert [within.lanes(columns) for columns in (576, 4096)] == [8, 32]
    assert used.within(dict.fromkeys(THREADS, 1024)) is used


def test_a_fingerprint_names_the_cuts():
    other = SUBGROUPS.with_cut("qkv", 8, Cut(64, 2, 1, 1))
    assert len({tuning.fingerprint for tuning in (SOFTWARE, GPU, SUBGROUPS, other)}) == 4
    assert replace(other).fingerprint == other.fingerprint


@pytest.mark.parametrize("heads", [1, 3, 6, 7, 8, 71])
@pytest.mark.parametrize("head_size", [16, 64, 80, 96, 128, 256])
def test_attention_has_a_thread_for_each_four(heads, head_size):
    threads = [GPU.attention(width, heads, head_size) for width in WIDTHS]
    assert all(head_size // 4 <= number <= 128 and number & number - 1 == 0 for number in threads)
    assert sorted(threads, reverse=True) == threads and threads[-1] >= 64


def test_wide_attention_has_fewer_threads_unless_its_sums_are_many():
    assert [GPU.attention(width, 6, 128) for width in WIDTHS] == [128, 128, 128, 64, 64, 64]
    assert {GPU.attention(width, 7, 64) for width in WIDTHS} == {128}
    assert {SOFTWARE.attention(width, 7, 64) for width in WIDTHS} == {4}


def test_models_of_three_sizes_have_cuts_of_their_own():
    cuts = [SUBGROUPS.cut("gate_up", 8, hidden) for hidden in (896, 1023, 1024, 2047, 2048, 4096)]
    assert cuts[0] == cuts[1] != cuts[2] == cuts[3] != cuts[4] == cuts[5] != cuts[0]


@pytest.mark.parametrize("threads", [128, 256, 512, 1024])
@pytest.mark.parametrize("sizes", [SMOLLM2, QWEN2_1B, QWEN2_7B], ids=["smollm2", "qwen2-1.5b", "qwen2-7b"])
def test_every_sum_has_one_owner(sizes, threads):
    """Without subgroups: what the kernels of all widths add up, and which lanes own it."""
    limits = DEFAULT_LIMITS | dict.fromkeys(THREADS, threads)
    _, plan = planned(sizes | {"layers": 1}, replace(GPU, most_threads=threads), bias=True)
    products = [dispatch.kernel for width in WIDTHS for dispatch in everything(plan, width)]
    for kernel in {kernel for kernel in products if kernel.role in GPU.small}:
        values = dict(kernel.values)
        code = compose(kernel.role, values, limits).code
        owners, owned = int(re.search(r"owner = lane < (\d+)u", code)[1]), len(re.findall(r"let done_\d+ =", code))
        assert owners <= values["LANES"] and owners * owned == values["ROWS"] * values["TOKENS"]
        assert values["ROWS"] % owned == 0  # they are rows of one token


def test_lanes():
    """One value per matrix: powers of two, enough blocks for each lane."""
    expected = {32: 8, 576: 8, 768: 8, 800: 16, 1536: 16, 2048: 16, 2080: 32, 18944: 32}
    assert {columns: GPU.lanes(columns) for columns in expected} == expected
    assert SOFTWARE.lanes(18944) == 1
