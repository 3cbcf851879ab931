"""Sampling on the GPU: what a request asks, and the dispatches that choose a token for every node of a step.

Order: penalties, bias, temperature, top-k, top-p, min-p, then a draw whose noise is a function of (seed, position,
token) alone. So a node's choice is the token that plain decoding would choose at its position (docs/sampling.md).
"""

from dataclasses import dataclass
from math import isfinite, log
from struct import pack

from pyweb.device import Device
from pyweb.errors import UsageError
from pyweb.kernels.tuning import Tuning
from pyweb.models import Decoder
from pyweb.plan.buffers import Buffers
from pyweb.plan.control import MAX_NODES
from pyweb.plan.dispatch import Binding, Dispatch, Kernel

__all__ = ["MAX_BIASES", "Sampling", "SamplingPlan", "Stages"]

MAX_BIASES = 256
_PARAMETERS = "<2I2f2I4f2I"
_PARAMETER_BYTES = 48
_FURTHEST = 50.0  # a token further below the best one can't win: noise lies between 2^-64 and 44.4
_FORBIDDEN = -1e30  # stands for a bias of minus infinity, on which WGSL promises nothing
_MAX_SEGMENTS = 64
_REMEDY = "Change the sampling options."
_RANGES = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.01, 100),
    "presence_penalty": (-100, 100),
    "frequency_penalty": (-100, 100),
}


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True)
class Stages:
    """Which kernels a request needs; programs are kept by it."""

    count: bool
    adjust: bool
    cut: bool
    draw: bool


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen. The default is greedy.

    Args:
        temperature: logits are divided by it; 0 takes the largest, ties to the lowest id.
        top_k: only the k likeliest tokens, and those that tie with the last of them; 0 is off.
        top_p: only the fewest likeliest tokens that hold this share of probability (Holtzman et al. 2020); 1 is off.
        min_p: only tokens at least this likely as a share of the likeliest (Nguyen et al. 2024); 0 is off.
        repetition_penalty: a positive logit of a token in prompt or reply is divided by it, a negative one multiplied
            (Keskar et al. 2019); 1 is off.
        presence_penalty: subtracted once from the logit of a token in the reply.
        frequency_penalty: subtracted for each time that a token stands in the reply.
        logit_bias: (token, added to its logit) pairs; minus infinity forbids a token.
        seed: 64 bits. The same seed, prompt and options give the same reply.

    Raises:
        UsageError: a value out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0

    def __post_init__(self):
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not (_is(value, (int, float)) and low <= value <= high):
                raise UsageError(f"{name} must be a number from {low} to {high}, not {value!r}.", _REMEDY)
        for name, bits in (("top_k", 32), ("seed", 64)):
            value = getattr(self, name)
            if not (_is(value, int) and 0 <= value < 1 << bits):
                raise UsageError(f"{name} must be a whole number of {bits} bits, not {value!r}.", _REMEDY)
        if 0 < self.temperature < 0.001:
            raise UsageError(f"temperature must be 0 or at least 0.001, not {self.temperature!r}.", _REMEDY)
        if self.top_p == 0:
            raise UsageError("top_p must be above 0.", _REMEDY)
        self._check_bias()

    def _check_bias(self) -> None:
        if len(self.logit_bias) > MAX_BIASES:
            raise UsageError(f"logit_bias can name {MAX_BIASES} tokens, not {len(self.logit_bias)}.", _REMEDY)
        for token, bias in self.logit_bias:
            if not (_is(token, int) and token >= 0):
                raise UsageError(f"logit_bias names tokens by their id, not {token!r}.", _REMEDY)
            if not (_is(bias, (int, float)) and (abs(bias) <= 1000 or bias == float("-inf"))):
                raise UsageError(f"A bias must be from -1000 to 1000 or minus infinity, not {bias!r}.", _REMEDY)
        if len({token for token, _ in self.logit_bias}) < len(self.logit_bias):
            raise UsageError("logit_bias names a token twice.", _REMEDY)

    @property
    def greedy(self) -> bool:
        """Whether this is the largest raw logit."""
        return not (self.stages.draw or self.stages.adjust)

    @property
    def stages(self) -> Stages:
        count = self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0
        draw = self.temperature > 0 and self.top_k != 1
        cut = draw and (self.top_k > 0 or self.top_p < 1)
        return Stages(count=count, adjust=count or bool(self.logit_bias), cut=cut, draw=draw)


def _parameters(sampling: Sampling) -> bytes:
    """The struct of shaders/include/sampling.wgsl."""
    temperature = sampling.temperature or 1.0
    furthest = min(_FURTHEST, -log(sampling.min_p)) if sampling.min_p else _FURTHEST
    return pack(
        _PARAMETERS,
        sampling.seed & 0xFFFFFFFF,
        sampling.seed >> 32,
        1 / temperature,
        max(furthest, 0.0),
        sampling.top_k,
        max(1, round(sampling.top_p * 2**32)) if sampling.top_p * 2**32 < 2**32 - 0.5 else 0,
        sampling.repetition_penalty,
        1 / sampling.repetition_penalty,
        sampling.presence_penalty,
        sampling.frequency_penalty,
        len(sampling.logit_bias),
        0,
    )


@dataclass(frozen=True)
class SamplingPlan:
    """Dispatches of sampling for one loaded model; made when a request first samples.

    A request begins with `writes`, then the dispatches of `begin` once, before its first step. Then `dispatches` stand
    in each step behind the head, in the place of the greedy choice: they leave the choices in `best`, `segments`
    entries a node, as `accept` reads them.

    Bindings: `parameters` and `biases` come from the host; `counts` (in the prompt, in the reply) and `bias` have an
    entry a token of the vocabulary; `cursor` says how much of the context is counted; `peak` has the largest logits of
    a node's segments, `cut` the greatest distance that top-k and top-p leave in.
    """

    vocabulary: int
    barrier_free: bool
    segments: int
    buffers: Buffers
    parameters: Binding
    biases: Binding
    counts: Binding
    bias: Binding
    cursor: Binding
    peak: Binding
    cut: Binding

    @classmethod
    async def allocate(cls, device: Device, decoder: Decoder, tuning: Tuning, buffers: Buffers) -> "SamplingPlan":
        """Allocates some 12 bytes a token of the vocabulary.

        Raises:
            GPUOutOfMemoryError: they don't fit.
        """
        vocabulary = decoder.vocabulary
        segments = min(-(-vocabulary // tuning.choose_segment), _MAX_SEGMENTS)
        sizes = {
            "parameters": _PARAMETER_BYTES,
            "biases": MAX_BIASES * 8,
            "counts": vocabulary * 8,
            "bias": vocabulary * 4,
            "cursor": 4,
            "peak": MAX_NODES * segments * 8,
            "cut": MAX_NODES * 4,
        }
        made = {name: Binding(await device.buffer(size, f"sampling {name}"), size) for name, size in sizes.items()}
        return cls(vocabulary, tuning.barrier_free, segments, buffers, **made)

    def writes(self, sampling: Sampling) -> list[tuple[int, int, bytes]]:
        """What the host writes at the start of a request: (buffer, offset, data).

        Raises:
            UsageError: a bias for a token that the model doesn't have.
        """
        for token, _ in sampling.logit_bias:
            if token >= self.vocabulary:
                raise UsageError(f"logit_bias names token {token}, the model has {self.vocabulary}.", _REMEDY)
        entries = ((token, bias if isfinite(bias) else _FORBIDDEN) for token, bias in sampling.logit_bias)
        biases = b"".join(pack("<If", *entry) for entry in entries)
        out = [(self.parameters.buffer, 0, _parameters(sampling))]
        return out + ([(self.biases.buffer, 0, biases)] if biases else [])

    def begin(self, sampling: Sampling) -> list[Dispatch]:
        """Once a request, behind its `writes`: nothing counted, biases in place. Empty where that isn't needed."""
        if not sampling.stages.adjust:
            return []
        reset = (self.counts, self.bias, self.cursor)
        spread = (self.parameters, self.biases, self.bias)
        return [
            Dispatch(Kernel.of("sample_reset", M=self.vocabulary), reset, (-(-self.vocabulary // 64), 1, 1)),
            Dispatch(Kernel.of("sample_bias"), spread, (MAX_BIASES // 64, 1, 1)),
        ]

    def dispatches(self, width: int, stages: Stages) -> list[Dispatch]:
        """From the logits of a step's nodes to their choices in `best`; what `stages` leave out isn't there."""
        if not stages.draw:
            return [*self._adjusted(width, stages), self._choose(self.buffers.best, width)]
        out = [*self._adjusted(width, stages), self._choose(self.peak, width)]
        if stages.cut:
            out.append(self._cut(width))
        return [*out, self._draw(width, stages.cut)]

    def _adjusted(self, width: int, stages: Stages) -> list[Dispatch]:
        b, out = self.buffers, []
        if stages.count:
            count = (b.control_head, b.request, b.context, self.counts, self.cursor)
            out.append(Dispatch(Kernel.of("sample_count"), count, (1, 1, 1)))
        if stages.adjust:
            adjust = (b.control_head, self.parameters, self.counts, self.bias, b.logits)
            grid = (-(-self.vocabulary // 64), width, 1)
            out.append(Dispatch(Kernel.of("sample_adjust", M=self.vocabulary), adjust, grid))
        return out

    def _choose(self, target: Binding, width: int) -> Dispatch:
        b = self.buffers
        return Dispatch(self._segmented("choose"), (b.control_head, b.logits, target), (self._groups, width, 1))

    def _cut(self, width: int) -> Dispatch:
        # One workgroup a node in both cuts: what it saves is more than its barriers cost on a software adapter.
        threads = 32 if self.barrier_free else 256
        kernel = Kernel.of("sample_cut", M=self.vocabulary, SEGMENTS=self.segments, THREADS=threads)
        b = self.buffers
        return Dispatch(kernel, (b.control_head, self.parameters, b.logits, self.peak, self.cut), (width, 1, 1))

    def _draw(self, width: int, cut: bool) -> Dispatch:
        b = self.buffers
        bindings = (b.control_head, self.parameters, b.logits, self.peak, b.best)
        kernel = self._segmented("sample_draw", CUT=cut)
        return Dispatch(kernel, bindings + ((self.cut,) if cut else ()), (self._groups, width, 1))

    def _segmented(self, role: str, **values: object) -> Kernel:
        threads = 1 if self.barrier_free else 256
        return Kernel.of(role, M=self.vocabulary, SEGMENTS=self.segments, THREADS=threads, **values)

    @property
    def _groups(self) -> int:
        """Workgroups over the segments: barrier-free ones take 32 each."""
        return -(-self.segments // 32) if self.barrier_free else self.segments
