// Greedy choice, first half: the largest logit of each segment, ties to the lowest id.
// best[t][segment] = (order-preserving bits of the logit, id).
#% include "include/control.wgsl"
const M = ${M}u;
const SEGMENTS = ${SEGMENTS}u;
const THREADS = ${THREADS}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;

// The IEEE bits of x, changed so that they order like the floats; both zeros are one.
fn ordered(x: f32) -> u32 {
  if (x == 0.0) { return 0x80000000u; }
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

// The best of the logits first, first + stride, ...
fn scan(t: u32, first: u32, stride: u32) -> vec2<u32> {
  var found = vec2<u32>(0u, 0u);
  for (var i = first; i < M; i += stride) {
    let value = ordered(logits[t * M + i]);
    if (value > found.x) { found = vec2<u32>(value, i); }
  }
  return found;
}

#% include "include/best.wgsl"
