"""How kernels are cut for a class of device.

What defines an order of additions (`lanes` of a row, `chunk` of attention) is one value per model and device for all
widths, so that N tokens in a step give the bits of N single steps. A product's `Cut` and the threads of attention don't
touch it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

__all__ = ["GPU", "SOFTWARE", "SUBGROUPS", "WIDTHS", "Cut", "Tuning", "choose_tuning"]

_MOST_LANES = 32
_MOST_THREADS = 1024  # of a workgroup, where the device grants them
_MOST_UNROLL = 4
_WIDE = 8  # nodes of a step that alone keep a GPU busy with attention
_FEW_HEADS = 6  # of a KV head: with more, 64 threads hold too many sums
_MIDDLE_HIDDEN, _LARGE_HIDDEN = 1024, 2048  # the larger a model, the more of the GPU its rows keep busy
WIDTHS = (1, 2, 4, 8, 16, 32)
"""Nodes a step can have."""


@dataclass(frozen=True)
class Cut:
    """How a product is cut: `threads` of a workgroup, `rows` and `tokens` whose sums a thread keeps in registers, and
    `unroll` blocks of a row that are on their way at once."""

    threads: int
    rows: int
    tokens: int
    unroll: int

    def within(self, threads: int) -> "Cut":
        """The same rows for a workgroup of at most `threads`: each takes more, and has more blocks on their way."""
        factor = self.threads // threads
        if factor <= 1:
            return self
        return Cut(threads, self.rows * factor, self.tokens, min(self.unroll * factor, _MOST_UNROLL))


@dataclass(frozen=True)
class Tuning:
    """One cut of all kernels.

    `barrier_free` kernels use one thread a row: a workgroup reduction is 5 to 30 times slower on software adapters.
    `subgroups` adds lanes by shuffles, in the order of the tree through workgroup memory that else does it. `small`,
    `middle` and `large` are the cuts of products by role and step width, for models of three sizes. `attention_threads`
    are the least and the most of attention. A workgroup has at most `most_threads`.
    """

    name: str
    barrier_free: bool
    subgroups: bool
    attention_threads: tuple[int, int]
    chunk: int
    choose_segment: int
    small: Mapping[str, Mapping[int, Cut]] = field(hash=False)
    middle: Mapping[str, Mapping[int, Cut]] = field(hash=False)
    large: Mapping[str, Mapping[int, Cut]] = field(hash=False)
    threads: int = 32
    most_lanes: int = _MOST_LANES
    most_threads: int = _MOST_THREADS

    def within(self, limits: Mapping[str, int]) -> "Tuning":
        """The same for a device with these WebGPU limits: workgroups have at most a power of two that it grants."""
        granted = min(limits["maxComputeInvocationsPerWorkgroup"], limits["maxComputeWorkgroupSizeX"])
        most = min(self.most_threads, 1 << (granted.bit_length() - 1))
        return self if most == self.most_threads else replace(self, most_threads=most)

    @property
    def fingerprint(self) -> str:
        """Names these numbers: another one where any differs."""
        return f"{crc32(repr(self).encode()):08x}"

    def lanes(self, inputs: int) -> int:
        """Threads that share a row of `inputs` columns: the power of two that leaves few of them idle."""
        if self.barrier_free:
            return 1
        blocks = inputs // 32
        return min(8 if blocks <= 24 else 16 if blocks <= 64 else 32, self.most_lanes)

    def cut(self, role: str, width: int, hidden: int) -> Cut:
        """The cut of a product in a step of `width` nodes of a model with a hidden state of `hidden`."""
        cuts = self.small if hidden < _MIDDLE_HIDDEN else self.middle if hidden < _LARGE_HIDDEN else self.large
        return cuts[role][width].within(self.most_threads)

    def attention(self, width: int, heads: int, head_size: int) -> int:
        """Threads of attention for the `heads` query heads of a KV head, at least one for each four of a value. In wide
        steps fewer, each with more positions: loads of queries bound them, and other nodes keep the GPU busy."""
        least, most = self.attention_threads
        if self.barrier_free:
            return least
        threads = least if width >= _WIDE and heads <= _FEW_HEADS else most
        return max(threads, 1 << (head_size // 4 - 1).bit_length())

    def with_cut(self, role: str, width: int, cut: Cut) -> "Tuning":
        """The same with one cut changed, for models of any size."""
        sizes = {"small": self.small, "middle": self.middle, "large": self.large}
        changed = {size: {**cuts, role: {**cuts[role], width: cut}} for size, cuts in sizes.items()}
        return replace(self, **changed)


def _cuts(*cuts: tuple[int, int, int, int]) -> dict[int, Cut]:
    """Cuts by step width, for each of WIDTHS one of (threads, rows, tokens, unroll)."""
    return {width: Cut(*cut) for width, cut in zip(WIDTHS, cuts, strict=True)}


# Found on an NVIDIA H200 by timing whole steps (docs/performance.md). Narrow steps wait for memory, and `residual` has
# one workgroup for 32 rows: many threads of few rows. Wide ones compute: few threads of many rows.
_SMALL = {
    "qkv": _cuts((256, 2, 1, 1), (256, 2, 1, 2), (256, 4, 4, 1), (256, 2, 2, 1), (256, 4, 4, 1), (256, 4, 4, 1)),
    "residual": _cuts(
        (1024, 1, 1, 1), (1024, 1, 1, 1), (1024, 1, 1, 2), (512, 2, 2, 1), (256, 4, 2, 2), (128, 8, 4, 1)
    ),
    "gate_up": _cuts((512, 4, 1, 4), (256, 8, 2, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 8, 1)),
    "matvec": _cuts((128, 4, 1, 2), (128, 4, 2, 2), (128, 8, 4, 1), (128, 8, 8, 1), (128, 8, 8, 1), (128, 8, 8, 1)),
}
_MIDDLE = _SMALL | {"gate_up": _SMALL["gate_up"] | {8: Cut(64, 8, 4, 1)}}
_LARGE = {
    "qkv": _cuts((256, 2, 1, 2), (256, 2, 1, 2), (128, 4, 2, 1), (64, 8, 4, 1), (128, 8, 4, 1), (128, 8, 8, 1)),
    "residual": _cuts((1024, 1, 1, 1), (1024, 1, 1, 1), (256, 4, 2, 1), (256, 4, 2, 1), (128, 8, 4, 1), (128, 8, 4, 1)),
    "gate_up": _cuts((256, 4, 1, 2), (256, 4, 2, 1), (256, 4, 4, 1), (128, 8, 8, 1), (128, 8, 8, 1), (128, 8, 8, 1)),
    "matvec": _SMALL["matvec"],
}

GPU = Tuning(
    "gpu",
    barrier_free=False,
    subgroups=False,
    attention_threads=(64, 128),
    chunk=32,
    choose_segment=4096,
    small=_SMALL,
    middle=_MIDDLE,
    large=_LARGE,
    most_threads=256,
)
"""For any GPU: 256 threads and 16 KiB a workgroup, no subgroups. On Metal a pipeline may have fewer threads than the
device grants, and one with more may be skipped in silence: https://github.com/gpuweb/gpuweb/issues/5315."""
SUBGROUPS = replace(GPU, name="subgroups", subgroups=True, most_threads=_MOST_THREADS)
"""For GPUs whose subgroups always have the same size, 32 or more threads."""
_ONE_THREAD_A_ROW = dict.fromkeys(
    ("qkv", "gate_up", "matvec"), {width: Cut(32, 4, min(width, 4), 1) for width in WIDTHS}
)
SOFTWARE = Tuning(
    "software",
    barrier_free=True,
    subgroups=False,
    attention_threads=(4, 4),
    chunk=32,
    choose_segment=64,
    small=_ONE_THREAD_A_ROW,
    middle=_ONE_THREAD_A_ROW,
    large=_ONE_THREAD_A_ROW,
)


def choose_tuning(info: Mapping[str, object]) -> Tuning:
    """The cut for an adapter, by its `GPUAdapterInfo` and whether kernels can use subgroups there."""
    name = f"{info.get('architecture', '')} {info.get('device', '')} {info.get('description', '')}".lower()
    software = any(word in name for word in ("swiftshader", "llvmpipe", "lavapipe", "basic render", "warp"))
    if software:
        return SOFTWARE
    sizes = {info.get("subgroupMinSize"), info.get("subgroupMaxSize")}
    return SUBGROUPS if info.get("subgroups") and len(sizes) == 1 and min(sizes) >= _MOST_LANES else GPU
