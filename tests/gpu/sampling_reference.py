"""Numpy twin of sampling, and the same by the textbook in float64."""

from collections.abc import Sequence

import numpy as np

from pyweb.plan.sampling import Sampling

__all__ = ["adjust", "choose", "distances", "exponential", "fixed", "kept", "power_of_e", "textbook_kept", "threefry"]

_F = np.float32
_U = np.uint32


def _fma(a, b, c, fused: bool = False) -> np.ndarray:
    """WGSL leaves it to the device whether `fma` rounds once or twice; SwiftShader's rounds twice."""
    kind = np.longdouble if fused else _F  # 80 bits hold the product of two float32
    return (np.asarray(a, kind) * np.asarray(b, kind) + np.asarray(c, kind)).astype(_F)


def _polynomial(coefficients: Sequence[float], x: np.ndarray, fused: bool) -> np.ndarray:
    """Horner's rule, highest power first."""
    out = np.full_like(x, _F(coefficients[0]))
    for coefficient in coefficients[1:]:
        out = _fma(out, x, _F(coefficient), fused)
    return out


def threefry(key: tuple[int, int], counter: tuple[object, object]) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32-20 of uint32 (arrays)."""
    schedule = [_U(key[0]), _U(key[1]), _U(key[0] ^ key[1] ^ 0x1BD11BDA)]
    with np.errstate(over="ignore"):
        a, b = np.asarray(counter[0], _U) + schedule[0], np.asarray(counter[1], _U) + schedule[1]
        for block in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
                a = a + b
                b = ((b << _U(r)) | (b >> _U(32 - r))) ^ a
            a = a + schedule[(block + 1) % 3]
            b = b + schedule[(block + 2) % 3] + _U(block + 1)
    return a, b


def exponential(bits: tuple[np.ndarray, np.ndarray], exact: bool = False, fused: bool = False) -> np.ndarray:
    """Exponential noise of 64 random bits: as the kernel computes it, or in float64 from the same u."""
    high, low = (np.asarray(word, np.uint64) for word in bits)
    whole = ((high & np.uint64(0x7FFFFFFF)) << np.uint64(32)) | low | np.uint64(1)
    top = whole >> np.uint64(32)
    length = np.where(top > 0, 32 + np.frexp(top.astype(float))[1], np.frexp((low | np.uint64(1)).astype(float))[1])
    shift = 64 - length
    mantissa = (whole << shift.astype(np.uint64) >> np.uint64(40)).astype(np.int64)  # 24 bits
    upper = high >> np.uint64(31) == 1
    if exact:
        u = np.ldexp(mantissa.astype(np.float64), -24 - shift)
        return np.where(upper, -np.log(u), -np.log1p(-u))
    u = np.ldexp(mantissa.astype(_F), -24 - shift).astype(_F)
    rest = ((1 << 24) - mantissa).astype(_F) * _F(2.0**-24)
    y = np.where(upper, rest, u)
    s = y / (_F(2) - y)
    p = _polynomial([1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1], s * s, fused)
    return _fma(np.where(upper, shift, 0).astype(_F), _F(np.log(2)), _F(2) * s * p, fused)


def power_of_e(y: np.ndarray, fused: bool = False) -> np.ndarray:
    """e^y as the kernel computes it."""
    y = np.asarray(y, _F)
    k = np.floor(_fma(y, _F(1.4426950408889634), _F(0.5), fused))
    r = _fma(k, _F(2.12194440e-4), _fma(k, _F(-0.693359375), y, fused), fused)
    cephes = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
    p = _fma(_polynomial(cephes, r, fused) * r, r, r, fused) + _F(1)
    return np.ldexp(p, k.astype(np.int64)).astype(_F)


def adjust(logits: np.ndarray, sampling: Sampling, prompt: Sequence[int], reply: Sequence[int]) -> np.ndarray:
    """Penalties and bias: float32 in, float32 out. `reply` includes a node's ancestors and itself."""
    size = len(logits)
    in_prompt, in_reply = (np.bincount(np.asarray(ids, int), minlength=size) for ids in (prompt, reply))
    inverse, penalty = _F(1 / sampling.repetition_penalty), _F(sampling.repetition_penalty)
    out = np.where(in_prompt + in_reply > 0, logits * np.where(logits > 0, inverse, penalty), logits).astype(_F)
    out = _fma(-_F(sampling.frequency_penalty), in_reply.astype(_F), out)
    out = out - np.where(in_reply > 0, _F(sampling.presence_penalty), _F(0))
    for token, bias in sampling.logit_bias:
        out[token] += _F(max(bias, -1e30))
    return out


def distances(adjusted: np.ndarray, sampling: Sampling) -> np.ndarray:
    """(largest logit - logit) / temperature, float32."""
    return (adjusted.max() - adjusted) * _F(1 / sampling.temperature)


def fixed(distance: np.ndarray) -> np.ndarray:
    """Distances in units of 2^-26, as top-k and top-p see them."""
    return (np.minimum(distance, _F(64 - 2.0**-18)) * _F(2**26)).astype(np.uint64)


def kept(distance: np.ndarray, sampling: Sampling) -> np.ndarray:
    """What top-k and top-p leave in: bool by token."""
    keys = fixed(distance)
    inside = np.ones(len(keys), bool)
    if 0 < sampling.top_k < len(keys):
        inside = keys <= np.sort(keys)[sampling.top_k - 1]
    if sampling.top_p < 1:
        order = np.argsort(keys, kind="stable")
        order = order[inside[order]]
        weights = power_of_e(-np.minimum(distance[order], _F(64))).astype(np.float64) * 2.0**40
        sums = np.cumsum(weights.astype(np.uint64))
        goal = int(sums[-1]) * round(sampling.top_p * 2**32) >> 32
        inside &= keys <= keys[order[np.searchsorted(sums, np.uint64(goal))]]
    return inside


def textbook_kept(logits: np.ndarray, sampling: Sampling) -> set[int]:
    """Temperature, top-k, top-p, min-p as they are commonly defined, in float64; no ties at a border."""
    scaled = logits.astype(np.float64) / sampling.temperature
    order = np.argsort(-scaled)[: sampling.top_k or None]
    p = np.exp(scaled[order] - scaled.max())
    p /= p.sum()
    before = np.cumsum(p) - p
    order, p = order[before < sampling.top_p], p[before < sampling.top_p]
    return set(order[p >= sampling.min_p * p[0]].tolist())


def choose(adjusted: np.ndarray, sampling: Sampling, position: int) -> int:
    """The token at a position, from adjusted logits."""
    if sampling.temperature == 0 or sampling.top_k == 1:
        return int(adjusted.argmax())
    distance = distances(adjusted, sampling)
    limit = -np.log(sampling.min_p) if sampling.min_p else 50
    inside = np.flatnonzero(kept(distance, sampling) & (distance <= _F(min(limit, 50))))
    noise = exponential(threefry((sampling.seed & 0xFFFFFFFF, sampling.seed >> 32), (position, inside)))
    return int(inside[(noise * power_of_e(distance[inside])).argmin()])
