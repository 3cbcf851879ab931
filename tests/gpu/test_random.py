"""Noise of sampling (shaders/include/random.wgsl) against its twin, the published vectors and its distribution."""

import asyncio

import numpy as np
import pytest

from pyweb import resources
from tests.gpu import sampling_reference as twin

PROBE = """
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<u32>>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= arrayLength(&source)) { return; }
  let bits = threefry(source[id.x].xy, source[id.x].zw);
  let noise = exponential(source[id.x].xy);
  let power = power_of_e(bitcast<f32>(source[id.x].z));
  result[id.x] = vec4<u32>(bits, bitcast<u32>(noise), bitcast<u32>(power));
}
"""


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.fixture(scope="module")
def probe(device):
    """Rows of four words to (hash of key and counter, exponential of the first two, e to the third), on the device."""
    [pipeline] = asyncio.run(device.compile([("probe", resources.text("shaders", "include/random.wgsl") + PROBE)]))

    def call(words):
        words = np.ascontiguousarray(words, np.uint32)
        source, result = (asyncio.run(device.buffer(words.nbytes)) for _ in range(2))
        device.write(source, 0, words.tobytes())
        group = device.bind(pipeline, [source, 0, words.nbytes, result, 0, words.nbytes])
        program = device.program([pipeline, group, -(-len(words) // 64), 1, 1])
        ticket = device.submit(program, 1, (result, 0, words.nbytes))
        out = np.frombuffer(asyncio.run(device.collect(ticket)), np.uint32).reshape(-1, 4)
        return out[:, :2], *np.ascontiguousarray(out[:, 2:].T).view(np.float32)

    return call


def test_threefry_has_the_published_vectors(probe):
    """Random123, tests/kat_vectors: threefry2x32 20."""
    words = [
        [0, 0, 0, 0],
        [0xFFFFFFFF] * 4,
        [0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3],
    ]
    expected = [[0x6B200159, 0x99BA4EFE], [0x1CB996FC, 0xBB002BE7], [0xC4923A9C, 0x483DF7A0]]
    assert probe(words)[0].tolist() == expected
    for row, right in zip(words, expected, strict=True):
        assert [int(word) for word in twin.threefry(row[:2], row[2:])] == right


def test_noise_equals_its_twin_bit_for_bit(probe, random):
    words = random.integers(0, 1 << 32, (20000, 4), np.uint32)
    shifts = random.integers(0, 63, 20000).astype(np.uint64)  # every length of the 63 bits
    whole = (words[:, 0].astype(np.uint64) << np.uint64(32) | words[:, 1]) & np.uint64((1 << 63) - 1)
    whole = whole >> shifts | (words[:, 0].astype(np.uint64) & np.uint64(1)) << np.uint64(63)
    words[:, 0], words[:, 1] = whole >> np.uint64(32), whole & np.uint64(0xFFFFFFFF)
    words[:, 2] = random.uniform(-80, 80, 20000).astype(np.float32).view(np.uint32)
    bits, noise, power = probe(words)
    for found, row in zip(bits[:200].tolist(), words[:200].tolist(), strict=True):
        assert found == [int(word) for word in twin.threefry(row[:2], row[2:])]
    pair = (words[:, 0], words[:, 1])
    y = words[:, 2].view(np.float32)
    flavours = [(twin.exponential(pair, fused=fused), twin.power_of_e(y, fused)) for fused in (False, True)]
    assert any(np.array_equal(noise, e) and np.array_equal(power, p) for e, p in flavours)
    np.testing.assert_allclose(noise, twin.exponential(pair, exact=True), rtol=4e-7)
    np.testing.assert_allclose(power, np.exp(y.astype(np.float64)), rtol=4e-7)


def test_noise_reaches_both_ends(probe):
    ends = [[0, 0], [0, 2], [0, 1 << 20], [0x7FFFFFFF, 0xFFFFFFFF], [0xFFFFFFFF, 0xFFFFFFFF], [1 << 31, 0]]
    noise = probe([[*bits, 0, 0] for bits in ends])[1]
    expected = [2.0**-64, 3 * 2.0**-64, 2.0**-44 + 2.0**-64, np.log(2), np.log(2), 64 * np.log(2)]
    np.testing.assert_allclose(noise, expected, rtol=4e-7)


def test_noise_is_exponential():
    """Kolmogorov-Smirnov on 200,000 draws (1.63 / sqrt n is the 1% bound); the smallest, which win, all differ."""
    noise = np.sort(twin.exponential(twin.threefry((7, 0), (11, np.arange(200_000)))))
    steps = np.arange(1, len(noise) + 1) / len(noise)
    assert np.abs(steps - -np.expm1(-noise.astype(np.float64))).max() < 1.63 / len(noise) ** 0.5
    assert len(np.unique(noise[:2000])) == 2000
