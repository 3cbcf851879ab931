"""A one-layer decoder with random weights, whose dispatches run one at a time on inputs of the test's choice."""

import asyncio
from collections.abc import Sequence

import numpy as np

from pyweb.kernels.tuning import Tuning
from pyweb.models import Decoder, Matrix, Vector
from pyweb.plan.buffers import allocate, rope_table
from pyweb.plan.control import CONTROL_BYTES, MAX_NODES, STATE, State, parse_state, request_bytes
from pyweb.plan.dispatch import Assembler, Binding, Dispatch
from pyweb.plan.step import StepPlan
from pyweb.plan.weights import PackedMatrix, Slice, WeightPlan
from pyweb.weights import layout

__all__ = ["CONTEXT", "Stage", "decoder"]

CONTEXT = 96  # with 32 slots more: four chunks


def decoder(bias: bool = False, **sizes: object) -> Decoder:
    """A one-layer decoder; by default with the sizes of `tiny_tied.gguf`, of which few divide evenly."""
    size = {"hidden": 96, "heads": 3, "kv_heads": 1, "head_size": 32, "feed_forward": 160, "vocabulary": 227}
    size |= {"rope_pairs": "adjacent", "rope_base": 10000.0} | sizes
    hidden, attention, up = size["hidden"], size["heads"] * size["head_size"], size["feed_forward"]
    qkv = attention + 2 * size["kv_heads"] * size["head_size"]
    shapes = {"qkv": (qkv, hidden), "output": (hidden, attention), "gate_up": (2 * up, hidden), "down": (hidden, up)}
    vectors = {name: Vector(name, (name,), hidden) for name in ("attn_norm", "ffn_norm")}
    if bias:
        vectors["qkv_bias"] = Vector("qkv_bias", ("qkv_bias",), qkv)
    return Decoder(
        architecture="llama",
        layers=1,
        context=CONTEXT,
        norm_eps=1e-5,
        embedding=Matrix("embedding", ("embedding",), size["vocabulary"], hidden),
        head=Matrix("head", ("head",), size["vocabulary"], hidden),
        final_norm=Vector("final_norm", ("final_norm",), hidden),
        matrices=({name: Matrix(name, (name,), *shape, cut=name != "qkv") for name, shape in shapes.items()},),
        vectors=(vectors,),
        **size,
    )


_LAYER = ("attn_norm", "qkv", "attention", "attention_merge", "output", "ffn_norm", "gate_up", "down")
_NAMES = ("embed", *_LAYER, "final_norm", "head", "choose", "accept", "nll", "prefill")


class Stage:
    """The decoder on a device under a tuning.

    `matrices` and `vectors` hold what the kernels compute with, float32; all matrices have the layout `kind`.
    """

    def __init__(self, device, decoder: Decoder, tuning: Tuning, kind: layout.Layout = layout.Q4, kv_f16: bool = True):
        self.device, self.decoder, self.tuning = device, decoder, tuning
        self.random = np.random.default_rng(7)
        self.assembler = Assembler(device)
        self.matrices: dict[str, np.ndarray] = {}
        self.vectors: dict[str, np.ndarray] = {}
        self._programs: dict[tuple[Dispatch, ...], int] = {}
        self.buffers = asyncio.run(allocate(device, decoder, tuning, CONTEXT, kv_f16))
        device.write(self.buffers.rope.buffer, 0, rope_table(decoder, self.buffers.slots))
        self.plan = StepPlan(decoder, tuning, self._weights(kind), self.buffers)

    def _weights(self, kind: layout.Layout) -> WeightPlan:
        plan, d = WeightPlan(), self.decoder
        for matrix in (d.embedding, d.head, *d.matrices[0].values()):
            blocks = matrix.rows * matrix.columns // 32
            codes = self.random.integers(0, 1 << 32, blocks * kind.code_bytes // 4, np.uint32)
            scales = self.random.uniform(-0.1, 0.1, -(-blocks * kind.scale_bytes // 4) * 2).astype(np.float16)
            scales = scales.view(np.uint32)
            self.matrices[matrix.name] = layout.dequantize(kind, codes, scales, matrix.columns)
            rows = d.feed_forward if matrix.name == "gate_up" else matrix.rows
            whole = Slice(0, rows, self.new(codes), self.new(scales))
            plan.matrices[matrix.name] = PackedMatrix(kind, matrix.rows, matrix.columns, (whole,))
        for vector in (d.final_norm, *d.vectors[0].values()):
            self.vectors[vector.name] = self.random.normal(1, 0.3, vector.size).astype(np.float32)
            plan.vectors[vector.name] = self.new(self.vectors[vector.name])
        return plan

    def new(self, array: np.ndarray) -> Binding:
        """A buffer that holds `array`."""
        binding = Binding(asyncio.run(self.device.buffer(array.nbytes)), array.nbytes)
        self.write(binding, array)
        return binding

    def write(self, binding: Binding, array: np.ndarray, offset: int = 0) -> None:
        self.device.write(binding.buffer, offset, np.ascontiguousarray(array).tobytes())

    def read(self, binding: Binding, kind: type = np.float32, shape: Sequence[int] = (-1,)) -> np.ndarray:
        """The front of a buffer, as much as `shape` takes."""
        size = binding.size if -1 in shape else int(np.prod(shape)) * np.dtype(kind).itemsize
        ticket = self.device.submit(0, 1, (binding.buffer, 0, size))
        return np.frombuffer(asyncio.run(self.device.collect(ticket)), kind).reshape(shape)

    def control(self, nodes, length, *, valid=None, flags=0, rest=(0, 0, 0)) -> None:
        """Sets the step's nodes and state; `rest` is (context length, emitted, steps)."""
        context_length, emitted, steps = rest
        valid = len(nodes) if valid is None else valid
        state = np.array([length, valid, context_length, flags, emitted, steps, 0, 0], np.uint32)
        nodes = np.pad(nodes.astype(np.uint32), ((0, MAX_NODES - len(nodes)), (0, 0)))
        self.write(self.buffers.control, np.concatenate([nodes.ravel(), state]))

    def order(self, shuffled: bool = True) -> np.ndarray:
        """Sets and returns the cache's permutation: entry p is the slot of position p."""
        slots = np.arange(self.buffers.slots, dtype=np.uint32)
        order = self.random.permutation(slots) if shuffled else slots
        self.write(self.buffers.order, order)
        return order

    def request(self, token_limit: int, context_limit: int, prompt_length: int, stops: Sequence[int] = ()) -> None:
        data = request_bytes(token_limit, context_limit, prompt_length, stops)
        self.device.write(self.buffers.request.buffer, 0, data)

    def state(self) -> State:
        return parse_state(self.read(self.buffers.control, np.uint8, (CONTROL_BYTES,))[STATE:].tobytes())

    def nodes(self) -> np.ndarray:
        """The nodes of the next step, (valid, 4)."""
        words = self.read(self.buffers.control, np.uint32)
        return words[: MAX_NODES * 4].reshape(-1, 4)[: words[STATE // 4 + 1]]

    def dispatches(self, width: int) -> dict[str, list[Dispatch]]:
        """A step's dispatches by name; `quantize`, which only barrier-free tunings need, goes with `gate_up`."""
        forward = self.plan.forward(width, self.plan.chunks(self.buffers.slots))
        quantize = [dispatch for dispatch in forward if dispatch.kernel.role == "quantize"]
        rest = [dispatch for dispatch in forward if dispatch not in quantize]
        rest += [*self.plan.head(width), *self.plan.choose(width)]
        rest += [self.plan.likelihood(width), self.plan.prefill_step(width)]
        names = [name for name in _NAMES if self.tuning.barrier_free or not name.endswith("_norm")]
        out = {name: [dispatch] for name, dispatch in zip(names, rest, strict=True)}
        out["gate_up"] += quantize
        return out

    def run(self, dispatches: Sequence[Dispatch], repeats: int = 1) -> None:
        key = tuple(dispatches)
        if key not in self._programs:
            self._programs[key] = asyncio.run(self.assembler.program(dispatches))
        self.device.submit(self._programs[key], repeats)
