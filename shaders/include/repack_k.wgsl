// ${KIND}: super-blocks of 256. An f16 times a small integer is exact in f32 and rounded once, to f16.
#% if KIND == "Q6_K"
// 128 bytes of low nibbles, 64 of high pairs of bits, 16 signed scales, f16 scale.
fn small_scale(at: u32, index: u32) -> f32 {
  return f32(extractBits(bitcast<i32>(word(at + 96u + index / 4u * 2u)), 8u * (index % 4u), 8u));
}

// Codes of 6 bits less 32: bit 5 clear means negative, so bits 5 to 7 are set.
fn less_32(code: vec4<u32>) -> vec4<u32> {
  return (code & vec4<u32>(0x1f1f1f1fu)) | ((~code & vec4<u32>(0x20202020u)) * 7u);
}

fn sixteen(nibbles: vec4<u32>, pairs: vec4<u32>, part: u32) -> vec4<u32> {
  let low = (nibbles >> vec4<u32>(4u * (part / 2u % 2u))) & NIBBLES;
  let high = (pairs >> vec4<u32>(2u * (part % 4u))) & vec4<u32>(0x03030303u);
  return less_32(low | (high << vec4<u32>(4u)));
}

fn block_at(block: u32) -> Block {
  let at = block / 8u * 105u;
  let part = block % 8u;
  let nibbles = at + part / 4u * 32u + part % 2u * 16u;
  let pairs = at + 64u + part / 4u * 16u;
  let scale = value_of(half(at + 104u));
  return Block(
    sixteen(four(nibbles), four(pairs), part),
    sixteen(four(nibbles + 8u), four(pairs + 8u), part),
    vec2<u32>(half_of(scale * small_scale(at, part * 2u)), half_of(scale * small_scale(at, part * 2u + 1u))),
    0u);
}
#% else
// f16 scale and minimum, eight 6-bit scales and minima in 12 bytes, maybe 256 fifth bits, 128 bytes of nibbles.
#% set WORDS = {"Q4_K": 36, "Q5_K": 44}[KIND]
fn byte(value: u32, index: u32) -> u32 {
  return extractBits(value, 8u * index, 8u);
}

// (scale, minimum) of a part of 32, as integers.
fn small_scales(at: u32, part: u32) -> vec2<f32> {
  let i = part % 4u;
  let scale = byte(source[at + 1u], i);
  let minimum = byte(source[at + 2u], i);
  if (part < 4u) { return vec2<f32>(vec2<u32>(scale & 63u, minimum & 63u)); }
  let low = byte(source[at + 3u], i);
  return vec2<f32>(vec2<u32>((low & 15u) | ((scale >> 6u) << 4u), (low >> 4u) | ((minimum >> 6u) << 4u)));
}

fn sixteen(at: u32, part: u32, word: u32) -> vec4<u32> {
  let first = at + ${WORDS - 32}u + part / 2u * 8u + word;
  let packed = vec4<u32>(source[first], source[first + 1u], source[first + 2u], source[first + 3u]);
  let codes = (packed >> vec4<u32>(4u * (part % 2u))) & NIBBLES;
#% if KIND == "Q5_K"
  let high = at + 4u + word;
  let bits = vec4<u32>(source[high], source[high + 1u], source[high + 2u], source[high + 3u]);
  return codes | (((bits >> vec4<u32>(part)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u));
#% else
  return codes;
#% endif
}

fn block_at(block: u32) -> Block {
  let at = block / 8u * ${WORDS}u;
  let part = block % 8u;
  let small = small_scales(at, part);
  let scale = half_of(value_of(half(at * 2u)) * small.x);
  let offset = half_of(-value_of(half(at * 2u + 1u)) * small.y);
  return Block(sixteen(at, part, 0u), sixteen(at, part, 4u), vec2<u32>(scale), offset);
}
#% endif
