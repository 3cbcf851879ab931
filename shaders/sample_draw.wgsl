// The draw: the token of a node that wins the race min over tokens of E * e^distance, E exponential noise of (seed,
// position, token). That is Gumbel-max, argmax of logit / temperature - log E, without its second logarithm; a token wins
// with its probability. Out are tokens beyond the cut of top-k and top-p, and beyond `furthest` (min-p, or 50: further
// ones can't win, as E lies between 2^-64 and 44.4).
// best[t][segment] = (complement of the bits of the least value, id), as `choose` leaves it; ties to the lowest id. A
// segment is every SEGMENTS * THREADS-th token of each of THREADS threads, one thread's where THREADS is 1 (no barriers).
#% include "include/control.wgsl"
#% include "include/sampling.wgsl"
#% include "include/random.wgsl"
#% include "include/peak.wgsl"
const M = ${M}u;
const SEGMENTS = ${SEGMENTS}u;
const THREADS = ${THREADS}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> peak: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> best: array<vec2<u32>>;
#% if CUT
@group(0) @binding(5) var<storage, read> cut: array<u32>;
#% endif

fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
}

// The best of the tokens first, first + stride, ...
fn scan(t: u32, first: u32, stride: u32) -> vec2<u32> {
  let peak_logit = largest(t);
  let position = control.length + control.nodes[t].z + 1u;
  var found = vec2<u32>(0u, 0u);
  for (var i = first; i < M; i += stride) {
    let distance = (peak_logit - logits[t * M + i]) * sampling.inverse_temperature;
    if (distance > sampling.furthest) { continue; }
#% if CUT
    if (fixed(distance) > cut[t]) { continue; }
#% endif
    let value = exponential(threefry(sampling.seed, vec2<u32>(position, i))) * power_of_e(distance);
    found = better(found, vec2<u32>(~bitcast<u32>(value), i));
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
