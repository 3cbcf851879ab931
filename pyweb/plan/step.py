"""The dispatches of a decoder's step: forward over N nodes, choice, acceptance; and the chunks of a prefill."""

from dataclasses import dataclass, replace

from pyweb.kernels.tuning import Cut, Tuning
from pyweb.models import Decoder
from pyweb.plan.buffers import Buffers
from pyweb.plan.control import RECORDS, RING
from pyweb.plan.dispatch import Binding, Dispatch, Kernel
from pyweb.plan.weights import PackedMatrix, WeightPlan

__all__ = ["StepPlan"]

_NORM_THREADS = 8  # of the separate norm


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class StepPlan:
    """Builds dispatch lists for one loaded model.

    `chunks` arguments bound the attention grid: chunks of positions that can be visible. They change no bit.
    """

    decoder: Decoder
    tuning: Tuning
    weights: WeightPlan
    buffers: Buffers

    def chunks(self, length: int) -> int:
        """Grid bound for nodes at positions below `length`: a power of two of chunks, so that few programs exist."""
        needed = _ceil(length, self.tuning.chunk)
        return min(1 << (needed - 1).bit_length(), _ceil(self.buffers.slots, self.tuning.chunk))

    def prefill_step(self, width: int) -> Dispatch:
        """Commits the chunk before and lays out the next one of `width` nodes."""
        b = self.buffers
        return Dispatch(Kernel.of("prefill", WIDTH=width), (b.control, b.request, b.context), (1, 1, 1))

    def forward(self, width: int, chunks: int, layers: int | None = None) -> list[Dispatch]:
        """Embedding and all layers (or the first `layers`): keys and values into the cache, the output in `hidden`."""
        out = self._embed(width)
        for layer in range(layers or self.decoder.layers):
            out += self._layer(layer, width, chunks)
        return out

    def head(self, width: int) -> list[Dispatch]:
        """Logits of all nodes."""
        b, norm = self.buffers, self.weights.vectors[self.decoder.final_norm.name]
        return [*self._separate_norm(norm, width), *self._matvec("head", b.x_hidden, b.logits, width)]

    def choose(self, width: int) -> list[Dispatch]:
        """Greedy choice of every node and the end of the step."""
        b, t, vocabulary = self.buffers, self.tuning, self.decoder.vocabulary
        segments = _ceil(vocabulary, t.choose_segment)
        groups = _ceil(segments, 32) if t.barrier_free else segments
        choose = Kernel.of("choose", M=vocabulary, SEGMENTS=segments, THREADS=1 if t.barrier_free else 256)
        return [
            Dispatch(choose, (b.control_head, b.logits, b.best), (groups, width, 1)),
            self.accept(width, segments),
        ]

    def accept(self, width: int, segments: int) -> Dispatch:
        """The end of a step, from `segments` candidates a node in `best`."""
        b = self.buffers
        kernel = Kernel.of("accept", SEGMENTS=segments, WIDTH=width, RECORDS=RECORDS, RING=RING)
        return Dispatch(kernel, (b.control, b.best, b.request, b.context, b.order), (1, 1, 1))

    def likelihood(self, width: int) -> Dispatch:
        """Negative log-likelihoods of the tokens that follow the nodes."""
        b = self.buffers
        threads = 4 if self.tuning.barrier_free else 256
        kernel = Kernel.of("nll", M=self.decoder.vocabulary, THREADS=threads)
        return Dispatch(kernel, (b.control_head, b.logits, b.context, b.nll), (width, 1, 1))

    def _embed(self, width: int) -> list[Dispatch]:
        b, table = self.buffers, self.weights.matrices["embedding"]
        fused = not self.tuning.barrier_free
        values = {"K": table.columns, "QUANTIZE": fused, "QUANTIZERS": 64, **table.layout.numbers}
        then = (self._norm_before(0), b.x_hidden) if fused else ()
        return [
            Dispatch(
                Kernel.of("embed", FIRST=part.first, COUNT=part.rows, **values),
                (b.control_head, part.codes, part.scales, b.hidden, *then),
                (_ceil(table.columns // 4, 64), width, 1),
            )
            for part in table.slices
        ]

    def _norm_before(self, layer: int) -> Binding:
        """Weights of the norm before a layer, or before the head."""
        d = self.decoder
        vector = d.vectors[layer]["attn_norm"] if layer < d.layers else d.final_norm
        return self.weights.vectors[vector.name]

    def _layer(self, layer: int, width: int, chunks: int) -> list[Dispatch]:
        b, d = self.buffers, self.decoder
        matrices = {role: matrix.name for role, matrix in d.matrices[layer].items()}
        vectors = {role: self.weights.vectors[vector.name] for role, vector in d.vectors[layer].items()}
        return [
            *self._separate_norm(vectors["attn_norm"], width),
            self._qkv(matrices["qkv"], vectors.get("qkv_bias"), b.kv[layer], width),
            *self._attention(b.kv[layer], width, chunks),
            *self._residual(matrices["output"], b.x_attention, vectors["ffn_norm"], width),
            *self._separate_norm(vectors["ffn_norm"], width),
            *self._gate_up(matrices["gate_up"], width),
            *self._residual(matrices["down"], b.x_feed_forward, self._norm_before(layer + 1), width),
        ]

    def _separate_norm(self, weight: Binding, width: int) -> list[Dispatch]:
        """The norm before a product, where the kernel before doesn't do it."""
        b, t, hidden = self.buffers, self.tuning, self.decoder.hidden
        if not t.barrier_free:
            return []
        kernel = Kernel.of("norm_quantize", K=hidden, EPS=self.decoder.norm_eps, THREADS=_NORM_THREADS)
        grid = (_ceil(hidden // 32, _NORM_THREADS), width, 1)
        return [Dispatch(kernel, (b.control_head, b.hidden, weight, b.x_hidden), grid)]

    def _product(self, role: str, matrix: PackedMatrix, width: int, normed: bool = True) -> tuple[Cut, dict]:
        """How a product is cut, and the numbers that all products have. `normed` activations come from a norm."""
        cut, lanes = self.tuning.cut(role, width, self.decoder.hidden), self.tuning.lanes(matrix.columns)
        if lanes > 1:
            # A lane owns the sums of one token in the end; a workgroup has 32 rows for its lanes to share.
            cut = replace(cut, tokens=min(cut.tokens, lanes), threads=min(cut.threads, 32 * lanes))
        values = {
            "K": matrix.columns,
            **matrix.layout.numbers,
            "LANES": lanes,
            "THREADS": cut.threads,
            "ROWS": cut.rows,
            "TOKENS": cut.tokens,
            "UNROLL": cut.unroll,
            "SUBGROUPS": self.tuning.subgroups,
            "NORM": normed and not self.tuning.barrier_free,
        }
        return cut, values | ({"EPS": self.decoder.norm_eps} if values["NORM"] else {})

    def _qkv(self, name: str, bias: Binding | None, kv: Binding, width: int) -> Dispatch:
        b, d, matrix = self.buffers, self.decoder, self.weights.matrices[name]
        (part,) = matrix.slices
        cut, values = self._product("qkv", matrix, width)
        values |= self._head_values() | {"ROPE_PAIRS": d.rope_pairs, "BIAS": bias is not None}
        rows = values["ROWS"] = 2 if self.tuning.barrier_free else cut.rows
        bindings = [b.control_head, b.x_hidden, part.codes, part.scales, b.rope, b.q, kv, b.order]
        bindings += [bias] if bias else []
        groups = _ceil(_ceil(matrix.rows, rows) * values["LANES"], cut.threads)
        return Dispatch(Kernel.of("qkv", **values), tuple(bindings), (groups, _ceil(width, cut.tokens), 1))

    def _head_values(self) -> dict[str, object]:
        d, b = self.decoder, self.buffers
        sizes = {"HEADS": d.heads, "KV_HEADS": d.kv_heads, "HEAD_SIZE": d.head_size}
        return sizes | {"SLOTS": b.slots, "KV_F16": b.kv_f16}

    def _attention(self, kv: Binding, width: int, chunks: int) -> list[Dispatch]:
        b, d, t = self.buffers, self.decoder, self.tuning
        values = self._head_values() | {"CHUNK": t.chunk, "LANES": 1 if t.barrier_free else 2}
        threads = t.attention(width, d.heads // d.kv_heads, d.head_size)
        attention = Kernel.of("attention", SCALE=d.head_size**-0.5, THREADS=threads, **values)
        values |= {"THREADS": threads} if t.barrier_free else {"QUANTIZERS": 16}
        merge = Kernel.of("attention_merge", **values)
        blocks = d.heads * d.head_size // 32
        grid, merge_grid = (d.kv_heads, chunks, width), (_ceil(blocks, 2), width, 1)
        if t.barrier_free:
            grid = (_ceil(d.kv_heads * chunks, threads), width, 1)
            merge_grid = (_ceil(blocks, threads), width, 1)
        return [
            Dispatch(attention, (b.control_head, b.q, kv, b.order, b.partial), grid),
            Dispatch(merge, (b.control_head, b.partial, b.x_attention), merge_grid),
        ]

    def _matvec(self, name: str, x: Binding, out: Binding, width: int) -> list[Dispatch]:
        matrix = self.weights.matrices[name]
        added = name != "head"
        cut, values = self._product("matvec", matrix, width, normed=not added)
        values |= {"M": matrix.rows, "RESIDUAL": added}
        return [
            Dispatch(
                Kernel.of("matvec", FIRST=part.first, COUNT=part.rows, **values),
                (self.buffers.control_head, x, part.codes, part.scales, out),
                (_ceil(_ceil(part.rows, cut.rows) * values["LANES"], cut.threads), _ceil(width, cut.tokens), 1),
            )
            for part in matrix.slices
        ]

    def _residual(self, name: str, x: Binding, norm: Binding, width: int) -> list[Dispatch]:
        """Adds a product to the hidden state; with the activation of the product behind the next norm."""
        b, matrix = self.buffers, self.weights.matrices[name]
        if self.tuning.barrier_free:
            return self._matvec(name, x, b.hidden, width)
        cut, values = self._product("residual", matrix, width, normed=False)
        values["ROWS"] = min(cut.rows, 32 * values["LANES"] // cut.threads)
        values |= {"M": matrix.rows, "QUANTIZERS": 8 * cut.tokens}
        return [
            Dispatch(
                Kernel.of("residual", FIRST=part.first, COUNT=part.rows, **values),
                (b.control_head, x, part.codes, part.scales, b.hidden, norm, b.x_hidden),
                (part.rows // 32, _ceil(width, cut.tokens), 1),
            )
            for part in matrix.slices
        ]

    def _gate_up(self, name: str, width: int) -> list[Dispatch]:
        b, t, size, matrix = self.buffers, self.tuning, self.decoder.feed_forward, self.weights.matrices[name]
        cut, values = self._product("gate_up", matrix, width)
        values |= {"M": size}
        if t.barrier_free:
            values["ROWS"], out, outputs = 2, b.feed_forward, cut.threads
        else:
            values["ROWS"], out, outputs = min(cut.rows, 64 * values["LANES"] // cut.threads), b.x_feed_forward, 32
            values["QUANTIZERS"] = 8 * cut.tokens
        dispatches = [
            Dispatch(
                Kernel.of("gate_up", FIRST=part.first, COUNT=part.rows, **values),
                (b.control_head, b.x_hidden, part.codes, part.scales, out),
                (_ceil(part.rows, outputs), _ceil(width, cut.tokens), 1),
            )
            for part in matrix.slices
        ]
        if t.barrier_free:
            quantize = Kernel.of("quantize", K=size, THREADS=t.threads)
            grid = (_ceil(size // 32, t.threads), width, 1)
            dispatches.append(Dispatch(quantize, (b.control_head, b.feed_forward, b.x_feed_forward), grid))
        return dispatches
