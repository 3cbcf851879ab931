"""Say what a GGUF file holds: sizes, weight types, tokenizer, memory, and whether we run it."""

from collections import Counter
from collections.abc import Collection
from math import prod

from pyweb.weights.gguf import GGUF, TensorInfo
from pyweb.weights.layout import BLOCK, LAYOUT_OF

__all__ = ["TOKENIZERS", "describe", "format_description"]

TOKENIZERS = ("gpt2", "llama")

_GROUPS = ("embedding", "attention", "ffn", "head", "norms", "other")
_F16_BYTES = 2


def describe(
    gguf: GGUF,
    architectures: Collection[str],
    kinds: Collection[str],
    context: int = 4096,
    tokenizers: Collection[str] = TOKENIZERS,
    splittings: Collection[str] | None = None,
) -> dict:
    """Describe a model file, as `pyweb models --inspect` shows it.

    Args:
        gguf: the parsed header.
        architectures: that we run, by their GGUF names.
        kinds: of weights that we run, such as "Q4_1".
        context: tokens for which the memory is given; a model's own limit where that is less.
        tokenizers: kinds of tokenizer that we run.
        splittings: names of word splitting that we run, for byte-level tokenizers; None takes any.

    Returns:
        A dict that `json.dumps` takes. Sizes are in bytes; what the file doesn't say is None.
        `runs` says whether we can run it, `missing` why not, a sentence each.
    """
    facts = _Facts(gguf)
    tensors = gguf.tensors.values()
    described = {
        "name": facts.text("general.name"),
        "architecture": facts.text("general.architecture"),
        "licence": facts.text("general.license"),
        "parameters": sum(prod(info.shape) for info in tensors),
        "weight_bytes": sum(info.nbytes for info in tensors),
        "tensors": len(tensors),
        "quantization": _quantization(tensors),
        "tokenizer": facts.text("tokenizer.ggml.model"),
        "splitting": facts.text("tokenizer.ggml.pre"),
        "vocabulary": facts.length("tokenizer.ggml.tokens"),
        "template": facts.text("tokenizer.chat_template") is not None,
        **facts.shape(),
    }
    described["memory"] = _memory(described, sum(map(_gpu_bytes, tensors)), context)
    described["missing"] = _missing(described, architectures, kinds, tokenizers, splittings)
    described["runs"] = not described["missing"]
    return described


def format_description(description: dict) -> str:
    """The description as lines for people."""
    lines = [(label, _shown(description[key])) for label, key in _LINES]
    lines.insert(3, ("weights", f"{_size(description['weight_bytes'])} in {description['tensors']} tensors"))
    for group, counts in description["quantization"].items():
        parts = [f"{kind} x {entry['count']} ({_size(entry['bytes'])})" for kind, entry in counts.items()]
        lines.append((f"  {group}", ", ".join(parts)))
    memory = description["memory"]
    if memory:
        total = f"{_size(memory['weights'])} weights + {_size(memory['kv_cache'])} cache"
        lines.append(("memory", f"{total} at {memory['context']} tokens"))
    lines.append(("runs here", _shown(description["runs"])))
    lines += [("  missing", _shown(sentence)) for sentence in description["missing"]]
    return "\n".join(f"{label:<16}{text}" for label, text in lines)


_LINES = (
    ("name", "name"),
    ("architecture", "architecture"),
    ("parameters", "parameters"),
    ("licence", "licence"),
    ("context", "context"),
    ("layers", "layers"),
    ("heads", "heads"),
    ("KV heads", "kv_heads"),
    ("head size", "head_size"),
    ("width", "width"),
    ("tokenizer", "tokenizer"),
    ("vocabulary", "vocabulary"),
    ("chat template", "template"),
)


class _Facts:
    """Metadata of a file that may say anything: a value of the wrong type counts as not said."""

    def __init__(self, gguf: GGUF):
        self.metadata = gguf.metadata

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def length(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return len(value) if isinstance(value, list) else None

    def count(self, key: str) -> int | None:
        """A positive number of the model's own section; the largest where there is one a layer."""
        value = self.metadata.get(f"{self.text('general.architecture')}.{key}")
        values = value if isinstance(value, list) else [value]
        numbers = [number for number in values if type(number) is int and number > 0]
        return max(numbers, default=None)

    def shape(self) -> dict[str, int | None]:
        heads, width = self.count("attention.head_count"), self.count("embedding_length")
        head_size = self.count("attention.key_length") or (width // heads if heads and width else None)
        return {
            "context": self.count("context_length"),
            "layers": self.count("block_count"),
            "heads": heads,
            "kv_heads": self.count("attention.head_count_kv") or heads,
            "head_size": head_size,
            "width": width,
        }


def _group(name: str) -> str:
    """The group of a tensor by its GGUF name, such as `blk.3.attn_q.weight`."""
    part = name.removesuffix(".weight").removesuffix(".bias").split(".")[-1]
    if "norm" in part:
        return "norms"
    if part.startswith("attn"):
        return "attention"
    if part.startswith("ffn"):
        return "ffn"
    return {"token_embd": "embedding", "output": "head"}.get(part, "other")


def _quantization(tensors: Collection[TensorInfo]) -> dict[str, dict[str, dict[str, int]]]:
    """Group -> kind -> count and bytes; groups without tensors are left out."""
    counts, sizes = Counter(), Counter()
    for info in tensors:
        place = _group(info.name), info.kind
        counts[place] += 1
        sizes[place] += info.nbytes
    return {
        group: {
            kind: {"count": counts[group, kind], "bytes": sizes[group, kind]}
            for of, kind in counts
            if of == group
        }
        for group in _GROUPS
        if any(of == group for of, _ in counts)
    }


def _gpu_bytes(info: TensorInfo) -> int:
    """What a tensor takes in its runtime layout; a little more where the tensors of one matrix differ in kind."""
    values = prod(info.shape)
    if len(info.shape) < 2:
        return values * 4
    layout = LAYOUT_OF.get(info.kind)
    return values // BLOCK * (layout.code_bytes + layout.scale_bytes) if layout else info.nbytes


def _memory(described: dict, weights: int, context: int) -> dict[str, int] | None:
    """Bytes on the GPU at a context, with keys and values in f16; None where the shape isn't known."""
    layers, kv_heads, head_size = described["layers"], described["kv_heads"], described["head_size"]
    if not (layers and kv_heads and head_size):
        return None
    context = min(context, described["context"] or context)
    cache = 2 * layers * kv_heads * head_size * _F16_BYTES * context
    return {"context": context, "weights": weights, "kv_cache": cache, "total": weights + cache}


def _missing(described, architectures, kinds, tokenizers, splittings) -> list[str]:
    sentences = []
    present = {kind for counts in described["quantization"].values() for kind in counts}
    if described["architecture"] is None:
        sentences.append("The file doesn't name its architecture.")
    elif described["architecture"] not in architectures:
        sentences.append(f"The architecture {described['architecture'][:40]} is not supported.")
    for kind in sorted(present - set(kinds)):
        sentences.append(f"Weights of type {kind} are not supported.")
    if described["tokenizer"] is None or not described["vocabulary"]:
        sentences.append("The file has no tokenizer.")
    elif described["tokenizer"] not in tokenizers:
        sentences.append(f"The tokenizer kind {described['tokenizer'][:40]} is not supported.")
    elif splittings is not None and described["tokenizer"] == "gpt2":
        name = described["splitting"] or "default"
        if name not in splittings:
            sentences.append(f"The tokenizer's word splitting {name[:40]} is not supported.")
    if described["memory"] is None:
        sentences.append("The file doesn't give layers, heads and width.")
    return sentences


def _shown(value) -> str:
    if value is None:
        return "not said"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "".join(letter if letter.isprintable() else "?" for letter in value[:120])


def _size(nbytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} B"
