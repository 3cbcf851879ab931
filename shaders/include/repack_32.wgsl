// ${KIND}: blocks of 32 with f16 scale, maybe f16 offset, maybe 32 fifth bits, then codes; nibbles lie as at run time.
#% set HALVES = {"Q4_0": 9, "Q4_1": 10, "Q5_0": 11, "Q5_1": 12, "Q8_0": 17}[KIND]
#% if KIND in ("Q5_0", "Q5_1")

// Four bits each to bit 4 of the four bytes.
fn spread(bits: vec4<u32>) -> vec4<u32> {
  return ((bits & vec4<u32>(1u)) << vec4<u32>(4u)) | ((bits & vec4<u32>(2u)) << vec4<u32>(11u))
    | ((bits & vec4<u32>(4u)) << vec4<u32>(18u)) | ((bits & vec4<u32>(8u)) << vec4<u32>(25u));
}
#% endif
#% if KIND == "Q5_0"

// Codes of 5 bits less 16: bit 4 clear means negative, so bits 4 to 7 are set.
fn less_16(nibbles: vec4<u32>, fifth: vec4<u32>) -> vec4<u32> {
  return nibbles | ((fifth ^ vec4<u32>(0x10101010u)) * 15u);
}
#% endif

fn block_at(block: u32) -> Block {
  let at = block * ${HALVES}u;
  let scale = vec2<u32>(half(at));
#% if KIND == "Q8_0"
  return Block(four(at + 1u), four(at + 9u), scale, 0u);
#% else
  let packed = four(at + ${HALVES - 8}u);
  let low = packed & NIBBLES;
  let high = (packed >> vec4<u32>(4u)) & NIBBLES;
#% if KIND in ("Q5_0", "Q5_1")
  let fifth = word(at + ${HALVES - 10}u);
  let low_fifth = spread(vec4<u32>(fifth) >> vec4<u32>(0u, 4u, 8u, 12u));
  let high_fifth = spread(vec4<u32>(fifth) >> vec4<u32>(16u, 20u, 24u, 28u));
#% endif
#% if KIND == "Q4_0"
  return Block(low, high, scale, half_of(-8.0 * value_of(scale.x)));
#% elif KIND == "Q4_1"
  return Block(low, high, scale, half(at + 1u));
#% elif KIND == "Q5_0"
  return Block(less_16(low, low_fifth), less_16(high, high_fifth), scale, 0u);
#% else
  return Block(low | low_fifth, high | high_fifth, scale, half(at + 1u));
#% endif
#% endif
}
