"""Everything on the GPU beside the weights: control, activations, KV cache, RoPE table."""

from dataclasses import dataclass
from functools import lru_cache, partial
from struct import pack

from pyweb.device import Device
from pyweb.kernels.tuning import Tuning
from pyweb.models import Decoder
from pyweb.plan.allocation import allocate_binding
from pyweb.plan.control import CONTROL_BYTES, MAX_NODES, REQUEST_BYTES, STATE
from pyweb.plan.dispatch import Binding

__all__ = ["Buffers", "allocate", "identity_order", "rope_table"]

_X_BLOCK = 48  # a block of 32 8-bit activations: 32 bytes of codes, 16 of scale, sum and squares


@dataclass(frozen=True)
class Buffers:
    """Bindings by what they hold; sizes are for 32 nodes.

    `order` is the permutation of cache slots (shaders/include/attention.wgsl), the identity at first. `control_head` is
    the part of the control buffer that kernels read as a uniform. `hidden` is the residual that layers add to.
    """

    slots: int
    kv_f16: bool
    control: Binding
    control_head: Binding
    request: Binding
    context: Binding
    order: Binding
    rope: Binding
    hidden: Binding
    x_hidden: Binding
    x_attention: Binding
    x_feed_forward: Binding
    feed_forward: Binding
    q: Binding
    partial: Binding
    logits: Binding
    best: Binding
    nll: Binding
    kv: tuple[Binding, ...]

    @property
    def kv_bytes(self) -> int:
        return sum(binding.size for binding in self.kv)


def _sizes(decoder: Decoder, tuning: Tuning, slots: int) -> dict[str, int]:
    attention = decoder.heads * decoder.head_size
    chunks = -(-slots // tuning.chunk)
    return {
        "control": CONTROL_BYTES,
        "request": REQUEST_BYTES,
        "context": slots * 4,
        "order": slots * 4,
        "rope": slots * decoder.head_size * 4,
        "hidden": MAX_NODES * decoder.hidden * 4,
        "x_hidden": MAX_NODES * decoder.hidden // 32 * _X_BLOCK,
        "x_attention": MAX_NODES * attention // 32 * _X_BLOCK,
        "x_feed_forward": MAX_NODES * decoder.feed_forward // 32 * _X_BLOCK,
        "feed_forward": MAX_NODES * decoder.feed_forward * 4 if tuning.barrier_free else 4,
        "q": MAX_NODES * attention * 4,
        "partial": MAX_NODES * decoder.heads * chunks * (decoder.head_size + 4) * 4,
        "logits": MAX_NODES * decoder.vocabulary * 4,
        "best": MAX_NODES * -(-decoder.vocabulary // tuning.choose_segment) * 8,
        "nll": slots * 4,
    }


async def allocate(device: Device, decoder: Decoder, tuning: Tuning, context: int, kv_f16: bool) -> Buffers:
    """Allocates for a context of `context` tokens; the KV cache holds 32 slots more, for the nodes of a step.

    Raises:
        LimitError, GPUOutOfMemoryError: they don't fit.
    """
    slots = context + MAX_NODES
    binding = partial(allocate_binding, device)
    sizes = _sizes(decoder, tuning, slots)
    made = {name: await binding(size, name) for name, size in sizes.items()}
    device.write(made["order"].buffer, 0, identity_order(slots))
    kv = 2 * decoder.kv_heads * slots * decoder.head_size * (2 if kv_f16 else 4)
    return Buffers(
        slots=slots,
        kv_f16=kv_f16,
        control_head=Binding(made["control"].buffer, STATE + 32),
        kv=tuple([await binding(kv, f"kv {layer}") for layer in range(decoder.layers)]),
        **made,
    )


@lru_cache(1)
def identity_order(slots: int) -> bytes:
    """The permutation of cache slots before any draft was accepted."""
    return pack(f"<{slots}I", *range(slots))


def rope_table(decoder: Decoder, slots: int) -> bytes:
    """Cosine and sine by position and pair, float32 (slots, head_size / 2, 2): WGSL's own are off by up to 2e-4."""
    import numpy as np

    frequencies = decoder.rope_base ** (-np.arange(0, decoder.head_size, 2) / decoder.head_size)
    angles = np.arange(slots)[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32).tobytes()
