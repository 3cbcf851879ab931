// Joins the chunks of a head in rising order and quantizes: x = quantize(sum_c e^(m_c - m) a_c / sum_c e^(m_c - m) l_c).
#% if LANES > 1
// One workgroup for 64 consecutive elements (two blocks) of a node, one thread an element.
#% else
// Barrier-free: one thread a block of 32.
#% endif
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
#% include "include/attention.wgsl"
const WIDTH = HEADS * HALF * 2u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> partial: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<vec4<u32>>;

fn merged(t: u32, pair: u32, chunks: u32) -> vec2<f32> {
  let first = (t * HEADS + pair / HALF) * CHUNKS;
  var largest = -3.0e38;
  for (var c = 0u; c < chunks; c++) { largest = max(largest, partial[(first + c) * PARTIAL + HALF].x); }
  var sum = vec2<f32>(0.0);
  var total = 0.0;
  for (var c = 0u; c < chunks; c++) {
    let at = (first + c) * PARTIAL;
    let factor = exp(partial[at + HALF].x - largest);
    sum = fma(vec2<f32>(factor), partial[at + pair % HALF], sum);
    total = fma(factor, partial[at + HALF].y, total);
  }
  return sum / total;
}

#% if LANES > 1
var<workgroup> values: array<vec4<f32>, 16>;

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  if (control.flags != 0u || t >= control.valid) { return; }
  let chunks = (control.length + control.nodes[t].z) / CHUNK + 1u;
  let pair = min(group.x * 32u + thread, WIDTH / 2u - 1u);
  let value = merged(t, pair, chunks);
  values[thread / 2u][thread % 2u * 2u] = value.x;
  values[thread / 2u][thread % 2u * 2u + 1u] = value.y;
  workgroupBarrier();
  let block = group.x * 2u + thread;
  if (thread >= 2u || block >= WIDTH / 32u) { return; }
  var mine: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) { mine[i] = values[thread * 8u + i]; }
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  let block = id.x;
  if (control.flags != 0u || t >= control.valid || block >= WIDTH / 32u) { return; }
  let chunks = (control.length + control.nodes[t].z) / CHUNK + 1u;
  var mine: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) {
    mine[i] = vec4<f32>(merged(t, block * 16u + i * 2u, chunks), merged(t, block * 16u + i * 2u + 1u, chunks));
  }
#% endif
  let stored = quantize32(mine);
  let at = (t * (WIDTH / 32u) + block) * 3u;
  x[at] = stored.low;
  x[at + 1u] = stored.high;
  x[at + 2u] = stored.scale;
}
