"""What an answer tells of itself."""

from dataclasses import dataclass, field

from pyweb.device import Device

__all__ = ["Answer", "adapter_name"]


def adapter_name(device: Device) -> str:
    """The adapter in words, from what WebGPU tells of it."""
    words = dict.fromkeys(str(device.info.get(key) or "") for key in ("vendor", "architecture", "description"))
    return " ".join(word for word in words if word) or "unknown adapter"


@dataclass
class Answer:
    """An answer and how it came about. `times` in seconds; counts are of this answer alone.

    `material` is what stands before the conversation's first question, `more` what this question added of the page.
    `finish_reason` is "stop" (a stop token or string), "length" (the limit or a full context) or "cancelled". `reused`
    prompt tokens were in the KV cache already; `dropped` earlier turns of the conversation didn't fit any more, which
    `notes`, sentences for the visitor, say as well. `warning` is one where this device can't run wide steps exactly,
    else empty. `records` has (tokens emitted, match length, width) of each step, `windows` (width, steps, seconds) of
    each window. Under a frame budget it took the GPU's `least_share` at the worst and rested for `times["paused"]`.
    """

    answer: str
    prompt_ids: list[int]
    reply_ids: list[int]
    mode: str
    adapter: str
    finish_reason: str
    tokens_per_second: float
    submits: int
    maps: int
    dispatches: int
    steps: int
    widths: dict[str, int]
    reused: int = 0
    dropped: int = 0
    material: str = ""
    more: str = ""
    notes: list[str] = field(default_factory=list)
    warning: str = ""
    records: list[tuple[int, int, int]] = field(default_factory=list)
    windows: list[tuple[int, int, float]] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    least_share: float = 1.0
