// RMSNorm, then 8-bit blocks: x = quantize(hidden / sqrt(mean(hidden^2) + eps) * weight).
#% if LANES > 1
// One workgroup a token: each thread adds every THREADS-th word of four, then a fixed tree; eight threads share a block.
#% else
// Barrier-free: one thread a block of 32, each adding all squares itself.
#% endif
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
const WORDS = ${K // 4}u;
const THREADS = ${THREADS}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> hidden: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> x: array<vec4<u32>>;

fn inverse_rms(squares: f32) -> f32 {
  return 1.0 / sqrt(squares / ${K}.0 + ${EPS});
}

#% if LANES > 1
var<workgroup> partial: array<f32, ${THREADS}>;
var<workgroup> sums: array<i32, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.x;
  if (control.flags != 0u || t >= control.valid) { return; }
  var squares = 0.0;
  for (var w = thread; w < WORDS; w += THREADS) {
    let h = hidden[t * WORDS + w];
    squares = fma(h.x, h.x, squares);
    squares = fma(h.y, h.y, squares);
    squares = fma(h.z, h.z, squares);
    squares = fma(h.w, h.w, squares);
  }
  partial[thread] = squares;
  workgroupBarrier();
  for (var stride = THREADS / 2u; stride > 0u; stride /= 2u) {
    if (thread < stride) { partial[thread] += partial[thread + stride]; }
    workgroupBarrier();
  }
  let inverse = inverse_rms(partial[0]);
  for (var start = 0u; start < WORDS; start += THREADS) {
    let w = start + thread;
    var value = vec4<f32>(0.0);
    if (w < WORDS) { value = hidden[t * WORDS + w] * inverse * weight[w]; }
    workgroupBarrier();
    partial[thread] = max4(value);
    workgroupBarrier();
    let first = thread & ~7u;
    var largest = 0.0;
    for (var i = 0u; i < 8u; i++) { largest = max(largest, partial[first + i]); }
    let scale = block_scale(largest);
    let codes = quantize4(value, scale);
    sums[thread] = sum4(codes);
    workgroupBarrier();
    if (w < WORDS) {
      let at = (t * (WORDS / 8u) + w / 8u) * 3u;
      x[at + (w % 8u) / 4u][w % 4u] = pack4xI8(codes);
      if (w % 8u == 0u) {
        var sum = 0;
        for (var i = 0u; i < 8u; i++) { sum += sums[first + i]; }
        x[at + 2u] = scale_words(scale, sum);
      }
    }
  }
}
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  let block = id.x;
  if (control.flags != 0u || t >= control.valid || block >= WORDS / 8u) { return; }
  var squares = vec4<f32>(0.0);
  for (var w = 0u; w < WORDS; w++) {
    let h = hidden[t * WORDS + w];
    squares = fma(h, h, squares);
  }
  let inverse = inverse_rms((squares.x + squares.y) + (squares.z + squares.w));
  var values: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) {
    values[i] = hidden[t * WORDS + block * 8u + i] * inverse * weight[block * 8u + i];
  }
  let stored = quantize32(values);
  let at = (t * (WORDS / 8u) + block) * 3u;
  x[at] = stored.low;
  x[at + 1u] = stored.high;
  x[at + 2u] = stored.scale;
}
#% endif
