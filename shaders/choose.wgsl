// Greedy choice, first half: the largest logit of each segment, ties to the lowest id.
// best[t][segment] = (order-preserving bits of the logit, id); a segment is SEGMENT logits of each of THREADS threads,
// joined in workgroup memory, or one thread's where THREADS is 1 (barrier-free). The order of comparison changes nothing.
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

fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
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

#% if THREADS > 1
var<workgroup> found: array<vec2<u32>, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  if (control.flags != 0u || t >= control.valid) { return; }
  found[thread] = scan(t, group.x * THREADS + thread, SEGMENTS * THREADS);
  workgroupBarrier();
  for (var stride = THREADS / 2u; stride > 0u; stride /= 2u) {
    if (thread < stride) { found[thread] = better(found[thread], found[thread + stride]); }
    workgroupBarrier();
  }
  if (thread == 0u) { best[t * SEGMENTS + group.x] = found[0]; }
}
#% else
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= SEGMENTS) { return; }
  best[t * SEGMENTS + id.x] = scan(t, id.x, SEGMENTS);
}
#% endif
