"""How kernels are cut for a class of device.

What defines an order of additions (`lanes` of a row, `chunk` and threads of attention) is one value per model and
device for all widths, so that N tokens in a step give the bits of N single steps. A product's `Cut` doesn't touch it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["GPU", "SOFTWARE", "SUBGROUPS", "WIDTHS", "Cut", "Tuning", "choose_tuning"]

_MOST_LANES = 32
_LARGE_HIDDEN = 2048  # from here on the rows of a matrix keep the whole GPU busy
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


@dataclass(frozen=True)
class Tuning:
    """One cut of all kernels.

    `barrier_free` kernels use one thread a row: a workgroup reduction is 5 to 30 times slower on software adapters.
    `subgroups` adds lanes by shuffles, in the order of the tree through workgroup memory that else does it. `small` and
    `large` are the cuts of products by role and step width, for models of the two sizes.
    """

    name: str
    barrier_free: bool
    subgroups: bool
    attention_threads: int
    chunk: int
    choose_segment: int
    small: Mapping[str, Mapping[int, Cut]] = field(hash=False)
    large: Mapping[str, Mapping[int, Cut]] = field(hash=False)
    threads: int = 32
    most_lanes: int = _MOST_LANES

    def lanes(self, inputs: int) -> int:
        """Threads that share a row of `inputs` columns: the power of two that leaves few of them idle."""
        if self.barrier_free:
            return 1
        blocks = inputs // 32
        return min(8 if blocks <= 24 else 16 if blocks <= 64 else 32, self.most_lanes)

    def cut(self, role: str, width: int, hidden: int) -> Cut:
        """The cut of a product in a step of `width` nodes of a model with a hidden state of `hidden`."""
        cuts = self.large if hidden >= _LARGE_HIDDEN else self.small
        return cuts[role][width]

    def with_cut(self, role: str, width: int, cut: Cut) -> "Tuning":
        """The same with one cut changed, for models of either size."""
        changed = [dict(cuts) | {role: {**cuts[role], width: cut}} for cuts in (self.small, self.large)]
        return replace(self, small=changed[0], large=changed[1])


def _cuts(*cuts: tuple[int, int, int, int]) -> dict[int, Cut]:
    """Cuts by step width, for each of WIDTHS one of (threads, rows, tokens, unroll)."""
    return {width: Cut(*cut) for width, cut in zip(WIDTHS, cuts, strict=True)}


# Found on an NVIDIA H200 by timing whole steps (docs/performance.md). Steps of one or two nodes wait for memory, so
# more blocks are on their way; wider ones compute.
_SMALL = {
    "qkv": _cuts((256, 2, 1, 1), (128, 2, 2, 2), (256, 4, 4, 1), (256, 4, 4, 1), (256, 4, 4, 1), (256, 4, 4, 1)),
    "residual": _cuts((256, 4, 1, 4), (256, 4, 2, 4), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1)),
    "gate_up": _cuts((256, 4, 1, 4), (256, 8, 2, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 8, 1)),
    "matvec": _cuts((128, 4, 1, 2), (128, 4, 2, 2), (128, 8, 4, 1), (128, 8, 8, 1), (128, 8, 8, 1), (128, 8, 8, 1)),
}
_LARGE = {
    "qkv": _cuts((256, 2, 1, 2), (128, 2, 2, 2), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1), (128, 8, 8, 1)),
    "residual": _cuts((256, 4, 1, 4), (256, 4, 2, 1), (256, 4, 4, 1), (256, 4, 4, 1), (128, 8, 4, 1), (128, 8, 4, 1)),
    "gate_up": _cuts((256, 8, 1, 2), (256, 8, 2, 2), (256, 8, 4, 1), (128, 8, 8, 1), (128, 8, 8, 1), (128, 8, 8, 1)),
    "matvec": _SMALL["matvec"],
}

GPU = Tuning(
    "gpu",
    barrier_free=False,
    subgroups=False,
    attention_threads=128,
    chunk=32,
    choose_segment=4096,
    small=_SMALL,
    large=_LARGE,
)
"""For any GPU: 256 threads and 16 KiB a workgroup, no subgroups."""
SUBGROUPS = replace(GPU, name="subgroups", subgroups=True)
"""For GPUs whose subgroups always have the same size, 32 or more threads."""
_ONE_THREAD_A_ROW = dict.fromkeys(
    ("qkv", "gate_up", "matvec"), {width: Cut(32, 4, min(width, 4), 1) for width in WIDTHS}
)
SOFTWARE = Tuning(
    "software",
    barrier_free=True,
    subgroups=False,
    attention_threads=4,
    chunk=32,
    choose_segment=64,
    small=_ONE_THREAD_A_ROW,
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
