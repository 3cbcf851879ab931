// Joins the chunks of a head and quantizes: x = quantize(sum_c e^(m_c - m) a_c / sum_c e^(m_c - m) l_c).
#% if LANES > 1
// One workgroup for 64 consecutive elements (two blocks) of a node: SUBSETS threads a four, each joins every SUBSETS-th
// chunk in rising order, four at a time, then the first joins theirs.
#% else
// Barrier-free: one thread a block of 32, all chunks in rising order.
#% endif
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
#% include "include/attention.wgsl"
const WIDTH = HEADS * HALF * 2u;
const NONE = -3.0e38;                     // the maximum of no chunk

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;

#% if LANES > 1
struct Joined {
  sum: vec4<f32>,
  largest: f32,
  total: f32,
}

#% include "include/quantize_shared.wgsl"
const SUBSETS = 8u;
var<workgroup> sums: array<vec4<f32>, 128>;
var<workgroup> stats: array<vec2<f32>, 128>;

// Chunks `subset`, subset + SUBSETS, ... of a four.
fn join(t: u32, four: u32, subset: u32, chunks: u32) -> Joined {
  let first = (t * HEADS + four / FOURS) * CHUNKS;
  var out = Joined(vec4<f32>(0.0), NONE, 0.0);
  for (var c = subset; c < chunks; c += 4u * SUBSETS) {
#% for u in range(4)
    let inside_${u} = c + ${u}u * SUBSETS < chunks;
    let at_${u} = (first + min(c + ${u}u * SUBSETS, chunks - 1u)) * PARTIAL;
    let part_${u} = partial[at_${u} + four % FOURS];
    let stat_${u} = partial[at_${u} + FOURS];
#% endfor
#% for u in range(4)
    if (inside_${u}) {
      let largest = max(out.largest, stat_${u}.x);
      let before = exp(out.largest - largest);
      let factor = exp(stat_${u}.x - largest);
      out.sum = fma(vec4<f32>(factor), part_${u}, out.sum * before);
      out.total = fma(factor, stat_${u}.y, out.total * before);
      out.largest = largest;
    }
#% endfor
  }
  return out;
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  if (control.flags != 0u || t >= control.valid) { return; }
  let chunks = (control.length + control.nodes[t].z) / CHUNK + 1u;
  let four = group.x * 16u + thread % 16u;
  let inside = four < WIDTH / 4u;
  let mine = join(t, min(four, WIDTH / 4u - 1u), thread / 16u, chunks);
  sums[thread] = mine.sum;
  stats[thread] = vec2<f32>(mine.largest, mine.total);
  workgroupBarrier();
  var value = vec4<f32>(0.0);
  if (thread < 16u) {
    var largest = NONE;
    for (var s = 0u; s < SUBSETS; s++) { largest = max(largest, stats[s * 16u + thread].x); }
    var sum = vec4<f32>(0.0);
    var total = 0.0;
    for (var s = 0u; s < SUBSETS; s++) {
      let factor = exp(stats[s * 16u + thread].x - largest);
      sum = fma(vec4<f32>(factor), sums[s * 16u + thread], sum);
      total = fma(factor, stats[s * 16u + thread].y, total);
    }
    value = select(vec4<f32>(0.0), sum / total, inside);
  }
  let stored = quantize_shared(thread, value, 0.0);
  if (thread < 16u && inside) {
    x[word_at(t, WIDTH / 32u, four / 8u, four % 8u)] = stored.word;
    if (four % 8u < 4u) { x[word_at(t, WIDTH / 32u, four / 8u, 8u + four % 8u)] = stored.scale[four % 4u]; }
  }
}
#% else
fn merged(t: u32, four: u32, chunks: u32) -> vec4<f32> {
  let first = (t * HEADS + four / FOURS) * CHUNKS;
  var largest = NONE;
  for (var c = 0u; c < chunks; c++) { largest = max(largest, partial[(first + c) * PARTIAL + FOURS].x); }
  var sum = vec4<f32>(0.0);
  var total = 0.0;
  for (var c = 0u; c < chunks; c++) {
    let at = (first + c) * PARTIAL;
    let factor = exp(partial[at + FOURS].x - largest);
    sum = fma(vec4<f32>(factor), partial[at + four % FOURS], sum);
    total = fma(factor, partial[at + FOURS].y, total);
  }
  return sum / total;
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  let block = id.x;
  if (control.flags != 0u || t >= control.valid || block >= WIDTH / 32u) { return; }
  let chunks = (control.length + control.nodes[t].z) / CHUNK + 1u;
  var mine: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) { mine[i] = merged(t, block * 8u + i, chunks); }
  let stored = quantize32(mine);
  for (var i = 0u; i < 4u; i++) {
    x[word_at(t, WIDTH / 32u, block, i)] = stored.low[i];
    x[word_at(t, WIDTH / 32u, block, 4u + i)] = stored.high[i];
    x[word_at(t, WIDTH / 32u, block, 8u + i)] = stored.scale[i];
  }
}
#% endif
