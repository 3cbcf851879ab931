// Noise of sampling, and the exponential function it is weighed with. No order of additions anywhere: every value is a
// function of its arguments alone.

// Threefry-2x32 with 20 rounds: 64 random bits of (key, counter). Additions, rotations and exclusive ors of 32 bits only.
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the same function as JAX's generator.
fn threefry_mix(x: vec2<u32>, r: vec4<u32>) -> vec2<u32> {
  var a = x.x;
  var b = x.y;
  a += b; b = ((b << r.x) | (b >> (32u - r.x))) ^ a;
  a += b; b = ((b << r.y) | (b >> (32u - r.y))) ^ a;
  a += b; b = ((b << r.z) | (b >> (32u - r.z))) ^ a;
  a += b; b = ((b << r.w) | (b >> (32u - r.w))) ^ a;
  return vec2<u32>(a, b);
}

fn threefry(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
  let odd = vec4<u32>(13u, 15u, 26u, 6u);
  let even = vec4<u32>(17u, 29u, 16u, 24u);
  let parity = key.x ^ key.y ^ 0x1bd11bdau;
  var x = counter + key;
  x = threefry_mix(x, odd) + vec2<u32>(key.y, parity + 1u);
  x = threefry_mix(x, even) + vec2<u32>(parity, key.x + 2u);
  x = threefry_mix(x, odd) + vec2<u32>(key.x, key.y + 3u);
  x = threefry_mix(x, even) + vec2<u32>(key.y, parity + 4u);
  return threefry_mix(x, odd) + vec2<u32>(parity, key.x + 5u);
}

// -log(1 - y) for 0 <= y <= 1/2 = 2 artanh(y / (2 - y)), whose series has positive terms only.
fn minus_log1m(y: f32) -> f32 {
  let s = y / (2.0 - y);
  let z = s * s;
  var p = 0.076923077;
  p = fma(p, z, 0.090909091);
  p = fma(p, z, 0.11111111);
  p = fma(p, z, 0.14285714);
  p = fma(p, z, 0.2);
  p = fma(p, z, 0.33333333);
  p = fma(p, z, 1.0);
  return 2.0 * s * p;
}

// A draw from the exponential distribution of mean 1, from 64 random bits: -log(u) where the top bit is set, else
// -log(1 - u), with u = (the other 63 bits, the lowest set) / 2^64 in (0, 1/2). u keeps its 24 leading bits wherever they
// lie, so both tails have full relative precision: from 2^-64 to 64 log 2.
fn exponential(bits: vec2<u32>) -> f32 {
  let high = bits.x & 0x7fffffffu;
  let low = bits.y | 1u;
  let far = high == 0u;
  let first = select(high, low, far);
  let second = select(low, 0u, far);
  let zeros = countLeadingZeros(first);            // at least 1 unless far
  let joined = (first << zeros) | ((second >> (31u - zeros)) >> 1u);
  let mantissa = joined >> 8u;                     // u = mantissa / 2^24 / 2^shift, mantissa in [2^23, 2^24)
  let shift = zeros + select(0u, 32u, far);
  let u = bitcast<f32>(((126u - shift) << 23u) | (mantissa & 0x7fffffu));
  let rest = f32(0x1000000u - mantissa) * 0x1p-24; // 1 - mantissa / 2^24, exact
  let upper = (bits.x >> 31u) == 1u;
  return fma(select(0.0, f32(shift), upper), 0.6931471805599453, minus_log1m(select(u, rest, upper)));
}

// e^y for |y| <= 80, to some 1e-7 of the value: e^(k log 2 + r) with |r| <= log 2 / 2; polynomial of Cephes' expf.
fn power_of_e(y: f32) -> f32 {
  let k = floor(fma(y, 1.4426950408889634, 0.5));
  var r = fma(k, -0.693359375, y);                 // k times this is exact
  r = fma(k, 2.12194440e-4, r);
  var p = 1.9875691500e-4;
  p = fma(p, r, 1.3981999507e-3);
  p = fma(p, r, 8.3334519073e-3);
  p = fma(p, r, 4.1665795894e-2);
  p = fma(p, r, 1.6666665459e-1);
  p = fma(p, r, 5.0000001201e-1);
  p = fma(p * r, r, r) + 1.0;
  return bitcast<f32>(bitcast<u32>(p) + (bitcast<u32>(i32(k)) << 23u));
}
