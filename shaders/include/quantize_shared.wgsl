// Quantizes blocks of 32 that lie in workgroup memory as eight vectors of four, eight threads a block. `squares`: what
// becomes of the sum of squares, which a product with NORM adds up.
const QUANTIZERS = ${QUANTIZERS}u;
var<workgroup> block_peaks: array<f32, ${QUANTIZERS}>;
var<workgroup> block_sums: array<i32, ${QUANTIZERS}>;
var<workgroup> block_squares: array<f32, ${QUANTIZERS}>;

struct Quantized {
  word: u32,
  scale: vec4<u32>,   // where the thread is the first of its block
}

// All threads of the workgroup call this; those from QUANTIZERS on with anything.
fn quantize_shared(thread: u32, value: vec4<f32>, squares: f32) -> Quantized {
  let mine = thread < QUANTIZERS;
  if (mine) { block_peaks[thread] = max4(value); }
  workgroupBarrier();
  let first = min(thread, QUANTIZERS - 1u) & ~7u;
  var largest = 0.0;
  for (var i = 0u; i < 8u; i++) { largest = max(largest, block_peaks[first + i]); }
  let scale = block_scale(largest);
  let codes = quantize4(value, scale);
  if (mine) {
    block_sums[thread] = sum4(codes);
    block_squares[thread] = squares;
  }
  workgroupBarrier();
  var sum = 0;
  var square = 0.0;
  for (var i = 0u; i < 8u; i++) {
    sum += block_sums[first + i];
    square += block_squares[first + i];
  }
  var words = scale_words(scale, sum);
  words.z = bitcast<u32>(square);
  return Quantized(pack4xI8(codes), words);
}

fn squares4(v: vec4<f32>) -> f32 {
  return fma(v.x, v.x, fma(v.y, v.y, fma(v.z, v.z, v.w * v.w)));
}
