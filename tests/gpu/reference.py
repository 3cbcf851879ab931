"""Numpy twins of the kernels, in float64 where a kernel adds in float32; and the draft trees they are tried on."""

from dataclasses import dataclass

import numpy as np

from pyweb.plan.control import MAX_NODES

__all__ = [
    "Activation",
    "attention",
    "chain",
    "close",
    "join_chunks",
    "quantize",
    "random_tree",
    "rms_norm",
    "rope",
    "silu",
    "visible_slots",
]

TIE = 1e-3  # codes may differ by one where the quotient lies this close to a half: division is only exact to 2.5 ulp


@dataclass(frozen=True)
class Activation:
    """8-bit blocks of 32: `codes` int64 (tokens, blocks, 32), `scales` and `squares` float32 (tokens, blocks)."""

    codes: np.ndarray
    scales: np.ndarray
    squares: np.ndarray | None = None

    @classmethod
    def parse(cls, words: np.ndarray, blocks: int) -> "Activation":
        """From the words of a buffer; the word behind the scale must be scale * sum of codes, the last one zero."""
        words = words.reshape(-1, 3, blocks, 4).swapaxes(1, 2).reshape(-1, blocks, 12)
        codes = np.ascontiguousarray(words[..., :8]).view(np.int8).astype(np.int64)
        scales, sums, squares = (np.ascontiguousarray(words[..., at]).view(np.float32) for at in (8, 9, 10))
        assert np.array_equal(sums, scales * codes.sum(-1).astype(np.float32))
        assert not words[..., 11].any()
        return cls(codes, scales, squares)

    def words(self) -> np.ndarray:
        """uint32 (tokens, 3, blocks, 4), as kernels read it."""
        packed = np.ascontiguousarray(self.codes.astype(np.int8)).view(np.uint32)
        sums = self.scales * self.codes.sum(-1).astype(np.float32)
        squares = np.zeros_like(sums) if self.squares is None else self.squares
        tail = np.stack([self.scales, sums, squares, np.zeros_like(sums)], -1).astype(np.float32)
        words = np.concatenate([packed, tail.view(np.uint32)], -1)
        return np.ascontiguousarray(words.reshape(*words.shape[:2], 3, 4).swapaxes(1, 2))

    def values(self) -> np.ndarray:
        """float64 (tokens, blocks * 32)."""
        return (self.codes * self.scales[..., None].astype(np.float64)).reshape(len(self.codes), -1)

    def assert_rounds(self, values: np.ndarray, tolerance: float = 2e-6) -> None:
        """Asserts that these are blocks of `values`: scales to `tolerance`, each code a nearest one up to ties."""
        blocks = np.asarray(values, np.float64).reshape(len(self.codes), -1, 32)
        largest = np.abs(blocks).max(-1)
        np.testing.assert_allclose(self.scales, largest / 127, rtol=tolerance, atol=1e-30)
        quotients = blocks / np.where(largest == 0, 1, largest / 127)[..., None]
        assert np.abs(self.codes - quotients).max() <= 0.5 + TIE


def quantize(values: np.ndarray) -> Activation:
    """Scale = largest magnitude / 127, codes rounded half to even, a zero block stays zero; in float32."""
    blocks = np.asarray(values, np.float32).reshape(len(values), -1, 32)
    scales = np.abs(blocks).max(-1) / np.float32(127)
    codes = np.rint(blocks / np.where(scales == 0, np.float32(1), scales)[..., None])
    return Activation(codes.astype(np.int64), scales)


def rms_norm(hidden: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    hidden = hidden.astype(np.float64)
    return hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + eps) * weight


def silu(gate: np.ndarray) -> np.ndarray:
    return gate / (1 + np.exp(-gate))


def rope(pairs: np.ndarray, positions: np.ndarray, base: float) -> np.ndarray:
    """Turns pairs (tokens, heads, half, 2) by position * base^(-i / half)."""
    half = pairs.shape[2]
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = pairs[..., 0], pairs[..., 1]
    return np.stack([a * cos - b * sin, a * sin + b * cos], -1)


def attention(q: np.ndarray, keys: np.ndarray, values: np.ndarray, slots: list[list[int]]) -> np.ndarray:
    """Softmax attention: q (tokens, heads, size), keys and values (kv_heads, slots, size), visible slots by token."""
    heads, size = q.shape[1:]
    group = heads // len(keys)
    out = np.empty(q.shape)
    for t, visible in enumerate(slots):
        for head in range(heads):
            scores = keys[head // group][visible].astype(np.float64) @ q[t, head] * size**-0.5
            weights = np.exp(scores - scores.max())
            out[t, head] = weights @ values[head // group][visible] / weights.sum()
    return out


def join_chunks(partial: np.ndarray) -> np.ndarray:
    """Joins (..., chunks, size + 4) partial results: weighted values, then (maximum, sum, 0, 0)."""
    partial = partial.astype(np.float64)
    factor = np.exp(partial[..., -4] - partial[..., -4].max(-1, keepdims=True))
    total = (factor * partial[..., -3]).sum(-1, keepdims=True)
    return (factor[..., None] * partial[..., :-4]).sum(-2) / total


def chain(count: int, tokens: np.ndarray | None = None) -> np.ndarray:
    """Nodes (token, parent, depth, mask of the node and its ancestors), each the child of the one before."""
    tokens = np.zeros(count, np.int64) if tokens is None else tokens
    nodes = [(tokens[i], max(i, 1) - 1, i, (1 << (i + 1)) - 1) for i in range(count)]
    return np.array(nodes, np.uint32)


def random_tree(random: np.random.Generator, vocabulary: int, count: int = MAX_NODES) -> np.ndarray:
    """A random draft tree, ancestors before descendants; one path is deep enough to cross a chunk."""
    nodes = [(random.integers(vocabulary), 0, 0, 1)]
    for i in range(1, count):
        parent = i - 1 if random.random() < 0.6 else int(random.integers(i))
        nodes.append((random.integers(vocabulary), parent, nodes[parent][2] + 1, nodes[parent][3] | 1 << i))
    return np.array(nodes, np.uint32)


def visible_slots(nodes: np.ndarray, length: int) -> list[list[int]]:
    """Slots that each node sees: the committed ones, then its ancestors' and its own, in depth order."""
    committed = list(range(length))
    return [committed + [length + i for i in range(len(nodes)) if int(node[3]) >> i & 1] for node in nodes]


def close(actual: np.ndarray, expected: np.ndarray, magnitude: np.ndarray | float, tolerance: float) -> None:
    """Asserts |actual - expected| <= tolerance * magnitude, the size of what was added up."""
    error = np.abs(np.asarray(actual, np.float64) - expected)
    assert np.all(error <= tolerance * magnitude), f"off by up to {np.max(error / magnitude):.2e} of the magnitude"
