"""The dispatches of a decoder's step: forward over N nodes, choice, acceptance; and the chunks of a prefill."""

from dataclasses import dataclass

from pyweb.kernels.tuning import Tuning
from pyweb.models import Decoder
from pyweb.plan.buffers import Buffers
from pyweb.plan.control import RECORDS, RING
from pyweb.plan.dispatch import Binding, Dispatch, Kernel
from pyweb.plan.weights import PackedMatrix, WeightPlan

__all__ = ["StepPlan"]


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
        """Final norm and logits of all nodes."""
        b = self.buffers
        norm = self.weights.vectors[self.decoder.final_norm.name]
        head = self.weights.matrices["head"]
        return [self._norm(norm, b.hidden[0], width), *self._product(head, b.x_hidden, b.logits, None, width)]

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
        return [
            Dispatch(
                Kernel.of("embed", K=table.columns, FIRST=part.first, COUNT=part.rows, **table.layout.numbers),
                (b.control_head, part.codes, part.scales, b.hidden[0]),
                (_ceil(table.columns // 4, 64), width, 1),
            )
            for part in table.slices
        ]

    def _layer(self, layer: int, width: int, chunks: int) -> list[Dispatch]:
        b, d = self.buffers, self.decoder
        matrices = {role: self.weights.matrices[matrix.name] for role, matrix in d.matrices[layer].items()}
        vectors = {role: self.weights.vectors[vector.name] for role, vector in d.vectors[layer].items()}
        return [
            self._norm(vectors["attn_norm"], b.hidden[0], width),
            self._qkv(matrices["qkv"], vectors.get("qkv_bias"), b.kv[layer], width),
            *self._attention(b.kv[layer], width, chunks),
            *self._product(matrices["output"], b.x_attention, b.hidden[1], b.hidden[0], width),
            self._norm(vectors["ffn_norm"], b.hidden[1], width),
            *self._gate_up(matrices["gate_up"], width),
            *self._product(matrices["down"], b.x_feed_forward, b.hidden[0], b.hidden[1], width),
        ]

    def _norm(self, weight: Binding, hidden: Binding, width: int) -> Dispatch:
        d, t = self.decoder, self.tuning
        values = {
            "K": d.hidden,
            "EPS": d.norm_eps,
            "THREADS": t.norm_threads,
            "LANES": 1 if t.barrier_free else 2,
        }
        grid = (_ceil(d.hidden // 32, t.norm_threads), width, 1) if t.barrier_free else (width, 1, 1)
        bindings = (self.buffers.control_head, hidden, weight, self.buffers.x_hidden)
        return Dispatch(Kernel.of("norm_quantize", **values), bindings, grid)

    def _matrix_values(self, matrix: PackedMatrix, width: int, rows: int) -> dict[str, object]:
        return {
            "K": matrix.columns,
            **matrix.layout.numbers,
            "LANES": self.tuning.lanes(matrix.columns),
            "THREADS": self.tuning.threads,
            "TOKENS": self.tuning.token_tile(width),
            "ROWS": rows,
        }

    def _grid(self, items: int, values: dict[str, object], width: int) -> tuple[int, int, int]:
        """Workgroups for `items` row groups (one of them for LANES threads) and all token tiles."""
        return (_ceil(items * values["LANES"], values["THREADS"]), _ceil(width, values["TOKENS"]), 1)

    def _qkv(self, matrix: PackedMatrix, bias: Binding | None, kv: Binding, width: int) -> Dispatch:
        b, d = self.buffers, self.decoder
        (part,) = matrix.slices
        values = self._matrix_values(matrix, width, 2) | self._head_values()
        values |= {"ROPE_PAIRS": d.rope_pairs, "BIAS": bias is not None}
        bindings = [b.control_head, b.x_hidden, part.codes, part.scales, b.rope, b.q, kv, b.order]
        bindings += [bias] if bias else []
        return Dispatch(Kernel.of("qkv", **values), tuple(bindings), self._grid(matrix.rows // 2, values, width))

    def _head_values(self) -> dict[str, object]:
        d, b = self.decoder, self.buffers
        sizes = {"HEADS": d.heads, "KV_HEADS": d.kv_heads, "HEAD_SIZE": d.head_size}
        return sizes | {"SLOTS": b.slots, "KV_F16": b.kv_f16}

    def _attention(self, kv: Binding, width: int, chunks: int) -> list[Dispatch]:
        b, d, t = self.buffers, self.decoder, self.tuning
        lanes, size = (1 if t.barrier_free else 2), d.heads * d.head_size
        values = self._head_values() | {"CHUNK": t.chunk, "LANES": lanes, "THREADS": t.attention_threads}
        attention = Kernel.of("attention", SCALE=d.head_size**-0.5, **values)
        grid = (
            (_ceil(d.kv_heads * chunks, t.attention_threads), width, 1)
            if t.barrier_free
            else (d.kv_heads, chunks, width)
        )
        per_group = t.attention_threads if t.barrier_free else 2
        merge_grid = (_ceil(size // 32, per_group), width, 1)
        return [
            Dispatch(attention, (b.control_head, b.q, kv, b.order, b.partial), grid),
            Dispatch(Kernel.of("attention_merge", **values), (b.control_head, b.partial, b.x_attention), merge_grid),
        ]

    def _product(
        self, matrix: PackedMatrix, x: Binding, out: Binding, residual: Binding | None, width: int
    ) -> list[Dispatch]:
        rows, added = self.tuning.rows, () if residual is None else (residual,)
        values = self._matrix_values(matrix, width, rows) | {"M": matrix.rows, "RESIDUAL": residual is not None}
        return [
            Dispatch(
                Kernel.of("matvec", FIRST=part.first, COUNT=part.rows, **values),
                (self.buffers.control_head, x, part.codes, part.scales, out, *added),
                self._grid(_ceil(part.rows, rows), values, width),
            )
            for part in matrix.slices
        ]

    def _gate_up(self, matrix: PackedMatrix, width: int) -> list[Dispatch]:
        b, t, size = self.buffers, self.tuning, self.decoder.feed_forward
        values = self._matrix_values(matrix, width, 2) | {"M": size}
        out = b.feed_forward if t.barrier_free else b.x_feed_forward
        per_group = t.threads if t.barrier_free else 32
        dispatches = [
            Dispatch(
                Kernel.of("gate_up", FIRST=part.first, COUNT=part.rows, **values),
                (b.control_head, b.x_hidden, part.codes, part.scales, out),
                (_ceil(part.rows, per_group), _ceil(width, values["TOKENS"]), 1),
            )
            for part in matrix.slices
        ]
        if t.barrier_free:
            quantize = Kernel.of("quantize", K=size, THREADS=t.threads)
            grid = (_ceil(size // 32, t.threads), width, 1)
            dispatches.append(Dispatch(quantize, (b.control_head, b.feed_forward, b.x_feed_forward), grid))
        return dispatches
