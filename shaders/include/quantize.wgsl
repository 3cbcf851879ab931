// An activation vector is a list of blocks of 32: eight words of four 8-bit codes, then (scale, scale * sum of codes).
// scale = largest magnitude / 127; codes are rounded half to even; a zero block stays zero.
fn block_scale(largest: f32) -> f32 {
  return largest / 127.0;
}

fn quantize4(values: vec4<f32>, scale: f32) -> vec4<i32> {
  if (scale == 0.0) { return vec4<i32>(0); }
  return vec4<i32>(round(values / scale));
}

fn sum4(codes: vec4<i32>) -> i32 {
  return codes.x + codes.y + codes.z + codes.w;
}

fn max4(values: vec4<f32>) -> f32 {
  let a = abs(values);
  return max(max(a.x, a.y), max(a.z, a.w));
}

fn scale_words(scale: f32, sum: i32) -> vec4<u32> {
  return vec4<u32>(bitcast<u32>(scale), bitcast<u32>(scale * f32(sum)), 0u, 0u);
}
