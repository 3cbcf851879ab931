// An activation vector is cut into blocks of 32: eight words of four 8-bit codes and (scale, scale * sum of codes, sum of
// squares or 0, 0). The first halves of all blocks' codes lie together, then the second halves, then the scales, so that
// threads side by side read side by side: word w of block b of token t is at word_at(t, blocks, b, w), w 8 to 11 the scale.
// scale = largest magnitude / 127; codes are rounded half to even; a zero block stays zero.
fn word_at(t: u32, blocks: u32, block: u32, word: u32) -> u32 {
  return ((t * 3u + word / 4u) * blocks + block) * 4u + word % 4u;
}

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

// A block as it is stored: two vectors of code words, then scale and sum.
struct Block {
  low: vec4<u32>,
  high: vec4<u32>,
  scale: vec4<u32>,
}

fn quantize32(values: array<vec4<f32>, 8>) -> Block {
  var all = values;
  var largest = 0.0;
  for (var i = 0u; i < 8u; i++) { largest = max(largest, max4(all[i])); }
  let scale = block_scale(largest);
  var sum = 0;
  var words: array<u32, 8>;
  for (var i = 0u; i < 8u; i++) {
    let codes = quantize4(all[i], scale);
    sum += sum4(codes);
    words[i] = pack4xI8(codes);
  }
  return Block(vec4<u32>(words[0], words[1], words[2], words[3]),
               vec4<u32>(words[4], words[5], words[6], words[7]),
               scale_words(scale, sum));
}
