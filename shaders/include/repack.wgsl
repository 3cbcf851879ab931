// Reading a file's blocks, which begin at any half-word, and f16 in integers: conversions of WGSL's own may round another
// way. A file may hold anything: a number that isn't finite counts as 0, one too large for f16 stays at the largest.

// The word that starts at half-word `at`.
fn word(at: u32) -> u32 {
  let low = source[at / 2u];
  if (at % 2u == 0u) { return low; }
  return (low >> 16u) | (source[at / 2u + 1u] << 16u);
}

fn four(at: u32) -> vec4<u32> {
  return vec4<u32>(word(at), word(at + 2u), word(at + 4u), word(at + 6u));
}

// The f16 bits at half-word `at`.
fn half(at: u32) -> u32 {
  let bits = (source[at / 2u] >> (16u * (at % 2u))) & 0xffffu;
  return select(bits, 0u, (bits & 0x7c00u) == 0x7c00u);
}

fn value_of(half: u32) -> f32 {
  return unpack2x16float(half).x;
}

// The nearest f16, half to even.
fn half_of(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size >= 0x477ff000u) { return sign | 0x7bffu; }
  if (size < 0x38800000u) { return sign | u32(round(abs(value) * 0x1p24)); }
  return sign | ((size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u);
}

const NIBBLES = vec4<u32>(0x0f0f0f0fu);
