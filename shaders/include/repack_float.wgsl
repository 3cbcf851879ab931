// ${KIND} to 8 bits: the scale is the largest magnitude / 127 rounded up to f16, so that no code is beyond 127.
fn value(index: u32) -> f32 {
#% if KIND == "F16"
  return value_of(half(index));
#% else
#% if KIND == "BF16"
  let bits = ((source[index / 2u] >> (16u * (index % 2u))) & 0xffffu) << 16u;
#% else
  let bits = source[index];
#% endif
  return bitcast<f32>(select(bits, 0u, (bits & 0x7f800000u) == 0x7f800000u));
#% endif
}

fn eight_bits(first: u32, scale: f32) -> u32 {
  let values = vec4<f32>(value(first), value(first + 1u), value(first + 2u), value(first + 3u));
  return pack4xI8(vec4<i32>(clamp(round(values / scale), vec4<f32>(-127.0), vec4<f32>(127.0))));
}

fn sixteen(first: u32, scale: f32) -> vec4<u32> {
  return vec4<u32>(eight_bits(first, scale), eight_bits(first + 4u, scale), eight_bits(first + 8u, scale),
                   eight_bits(first + 12u, scale));
}

fn block_at(block: u32) -> Block {
  let first = block * 32u;
  var largest = 0.0;
  for (var i = 0u; i < 32u; i++) { largest = max(largest, abs(value(first + i))); }
  if (largest == 0.0) { return Block(vec4<u32>(), vec4<u32>(), vec2<u32>(), 0u); }
  let step = largest / 127.0;
  let nearest = half_of(step);
  let scale = select(nearest, nearest + 1u, value_of(nearest) < step && nearest < 0x7bffu);
  return Block(sixteen(first, value_of(scale)), sixteen(first + 16u, value_of(scale)), vec2<u32>(scale), 0u);
}
