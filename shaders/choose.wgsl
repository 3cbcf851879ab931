// Greedy choice, first half: the largest logit of each segment of SEGMENT, ties to the lowest id.
// best[t][segment] = (order-preserving bits of the logit, id). One thread a segment.
#% include "include/control.wgsl"
const M = ${M}u;
const SEGMENT = ${SEGMENT}u;
const SEGMENTS = ${(M + SEGMENT - 1) // SEGMENT}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;

// The IEEE bits of x, changed so that they order like the floats.
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= SEGMENTS) { return; }
  var found = vec2<u32>(0u, 0u);
  for (var i = id.x; i < M; i += SEGMENTS) {
    let value = ordered(logits[t * M + i]);
    if (value > found.x) { found = vec2<u32>(value, i); }
  }
  best[t * SEGMENTS + id.x] = found;
}
