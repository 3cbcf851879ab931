// Attention of a node over one chunk of logical positions, for the query heads of one KV head.
// partial[t][head][chunk] = sum of exp(score - maximum) * value, then (maximum, sum of exp). Masked positions are skipped.
#% if LANES > 1
// One workgroup a (KV head, chunk, node), one thread a position; sums run over positions in rising order.
#% else
// Barrier-free: one thread a (KV head, chunk, node).
#% endif
#% include "include/control.wgsl"
#% include "include/attention.wgsl"
const FOURS = HALF / 4u;                  // a head is read four pairs at a time
@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> kv: array<${"vec4<u32>" if KV_F16 else "vec4<f32>"}>;
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> partial: array<vec2<f32>>;

struct Four {
  a: vec4<f32>,
  b: vec4<f32>,
}

fn four(at: u32) -> Four {
#% if KV_F16
  let words = kv[at];
  return Four(vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
              vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)));
#% else
  return Four(kv[at * 2u], kv[at * 2u + 1u]);
#% endif
}

fn slot_of(position: u32, mask: u32) -> u32 {
  if (position < control.length) { return order[position]; }
  return order[control.length + ancestor(mask, position - control.length)];
}

// Scores of the key at `row` for all query heads of the group.
fn score(query: u32, row: u32) -> array<f32, ${HEADS // KV_HEADS}> {
#% for g in range(HEADS // KV_HEADS)
  var sum_${g} = vec4<f32>(0.0);
#% endfor
  for (var i = 0u; i < FOURS; i++) {
    let key = four(row * FOURS + i);
#% for g in range(HEADS // KV_HEADS)
    sum_${g} = fma(q[query + ${g}u * FOURS * 2u + i * 2u], key.a, sum_${g});
    sum_${g} = fma(q[query + ${g}u * FOURS * 2u + i * 2u + 1u], key.b, sum_${g});
#% endfor
  }
  var out: array<f32, ${HEADS // KV_HEADS}>;
#% for g in range(HEADS // KV_HEADS)
  out[${g}] = ((sum_${g}.x + sum_${g}.y) + (sum_${g}.z + sum_${g}.w)) * ${SCALE};
#% endfor
  return out;
}

#% if LANES > 1
var<workgroup> weights: array<f32, ${HEADS // KV_HEADS * CHUNK}>;
var<workgroup> values_at: array<u32, ${CHUNK}>;

@compute @workgroup_size(${CHUNK})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let kv_head = group.x;
  let chunk = group.y;
  let t = group.z;
  let node = control.nodes[t];
  let last = control.length + node.z;
  if (control.flags != 0u || t >= control.valid || chunk * CHUNK > last) { return; }
  let visible = min(CHUNK, last + 1u - chunk * CHUNK);
  let row = kv_head * SLOTS + slot_of(min(chunk * CHUNK + thread, last), node.w);
  values_at[thread] = (KV_HEADS * SLOTS + row) * FOURS;
  let scores = score((t * HEADS + kv_head * GROUP) * FOURS * 2u, row);
  for (var g = 0u; g < GROUP; g++) { weights[g * CHUNK + thread] = scores[g]; }
  workgroupBarrier();
  for (var stride = CHUNK / 2u; stride > 0u; stride /= 2u) {
    if (thread < stride) {
      for (var g = 0u; g < GROUP; g++) {
        let at = g * CHUNK + thread;
        weights[at] = max(weights[at], weights[at + stride]);
      }
    }
    workgroupBarrier();
  }
  var largest: array<f32, ${HEADS // KV_HEADS}>;
  for (var g = 0u; g < GROUP; g++) { largest[g] = weights[g * CHUNK]; }
  workgroupBarrier();
  for (var g = 0u; g < GROUP; g++) { weights[g * CHUNK + thread] = exp(scores[g] - largest[g]); }
  workgroupBarrier();
  for (var index = thread; index < GROUP * FOURS; index += CHUNK) {
    let g = index / FOURS;
    let i = index % FOURS;
    var sum = Four(vec4<f32>(0.0), vec4<f32>(0.0));
    var total = 0.0;
    for (var p = 0u; p < visible; p++) {
      let weight = weights[g * CHUNK + p];
      let value = four(values_at[p] + i);
      sum.a = fma(vec4<f32>(weight), value.a, sum.a);
      sum.b = fma(vec4<f32>(weight), value.b, sum.b);
      total += weight;
    }
    let at = ((t * HEADS + kv_head * GROUP + g) * CHUNKS + chunk) * PARTIAL;
    partial[at + i * 4u] = sum.a.xy;
    partial[at + i * 4u + 1u] = sum.a.zw;
    partial[at + i * 4u + 2u] = sum.b.xy;
    partial[at + i * 4u + 3u] = sum.b.zw;
    if (i == 0u) { partial[at + HALF] = vec2<f32>(largest[g], total); }
  }
}
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let kv_head = id.x % KV_HEADS;
  let chunk = id.x / KV_HEADS;
  let t = id.y;
  let node = control.nodes[t];
  let last = control.length + node.z;
  if (control.flags != 0u || t >= control.valid || chunk * CHUNK > last) { return; }
  let visible = min(CHUNK, last + 1u - chunk * CHUNK);
  var rows: array<u32, ${CHUNK}>;
  var scores: array<array<f32, ${HEADS // KV_HEADS}>, ${CHUNK}>;
#% for g in range(HEADS // KV_HEADS)
  var largest_${g} = -3.0e38;
  var total_${g} = 0.0;
#% endfor
  for (var p = 0u; p < visible; p++) {
    rows[p] = kv_head * SLOTS + slot_of(chunk * CHUNK + p, node.w);
    scores[p] = score((t * HEADS + kv_head * GROUP) * FOURS * 2u, rows[p]);
#% for g in range(HEADS // KV_HEADS)
    largest_${g} = max(largest_${g}, scores[p][${g}]);
#% endfor
  }
  for (var p = 0u; p < visible; p++) {
#% for g in range(HEADS // KV_HEADS)
    scores[p][${g}] = exp(scores[p][${g}] - largest_${g});
    total_${g} += scores[p][${g}];
#% endfor
  }
  let first = (t * HEADS + kv_head * GROUP) * CHUNKS + chunk;
  for (var i = 0u; i < FOURS; i++) {
#% for g in range(HEADS // KV_HEADS)
    var a_${g} = vec4<f32>(0.0);
    var b_${g} = vec4<f32>(0.0);
#% endfor
    for (var p = 0u; p < visible; p++) {
      let value = four((KV_HEADS * SLOTS + rows[p]) * FOURS + i);
#% for g in range(HEADS // KV_HEADS)
      a_${g} = fma(vec4<f32>(scores[p][${g}]), value.a, a_${g});
      b_${g} = fma(vec4<f32>(scores[p][${g}]), value.b, b_${g});
#% endfor
    }
#% for g in range(HEADS // KV_HEADS)
    let at_${g} = (first + ${g}u * CHUNKS) * PARTIAL + i * 4u;
    partial[at_${g}] = a_${g}.xy;
    partial[at_${g} + 1u] = a_${g}.zw;
    partial[at_${g} + 2u] = b_${g}.xy;
    partial[at_${g} + 3u] = b_${g}.zw;
#% endfor
  }
#% for g in range(HEADS // KV_HEADS)
  partial[(first + ${g}u * CHUNKS) * PARTIAL + HALF] = vec2<f32>(largest_${g}, total_${g});
#% endfor
}
#% endif
