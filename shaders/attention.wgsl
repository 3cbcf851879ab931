// Attention of a node over one chunk of logical positions, for the query heads of one KV head.
// partial[t][head][chunk] = sum of exp(score - maximum) * value, then (maximum, sum of exp). Masked positions are skipped.
#% if LANES > 1
// One workgroup a (KV head, chunk, node), one thread a position; sums run over positions in rising order.
#% else
// Barrier-free: one thread a (head, chunk, node).
#% endif
#% include "include/control.wgsl"
#% include "include/attention.wgsl"
@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> q: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> kv: array<${"u32" if KV_F16 else "vec2<f32>"}>;
@group(0) @binding(3) var<storage, read_write> partial: array<vec2<f32>>;

fn key_value(at: u32) -> vec2<f32> {
  return ${"unpack2x16float(kv[at])" if KV_F16 else "kv[at]"};
}

fn slot_of(position: u32, mask: u32) -> u32 {
  if (position < control.length) { return position; }
  return control.length + ancestor(mask, position - control.length);
}

fn score(query: u32, key: u32) -> f32 {
  var sum = vec2<f32>(0.0);
  for (var i = 0u; i < HALF; i++) { sum = fma(q[query + i], key_value(key + i), sum); }
  return (sum.x + sum.y) * ${SCALE};
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
  values_at[thread] = (KV_HEADS * SLOTS + row) * HALF;
  var scores: array<f32, ${HEADS // KV_HEADS}>;
  for (var g = 0u; g < GROUP; g++) {
    scores[g] = score((t * HEADS + kv_head * GROUP + g) * HALF, row * HALF);
    weights[g * CHUNK + thread] = scores[g];
  }
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
  for (var index = thread; index < GROUP * HALF; index += CHUNK) {
    let g = index / HALF;
    let i = index % HALF;
    var sum = vec2<f32>(0.0);
    var total = 0.0;
    for (var p = 0u; p < visible; p++) {
      let weight = weights[g * CHUNK + p];
      sum = fma(vec2<f32>(weight), key_value(values_at[p] + i), sum);
      total += weight;
    }
    let at = ((t * HEADS + kv_head * GROUP + g) * CHUNKS + chunk) * PARTIAL;
    partial[at + i] = sum;
    if (i == 0u) { partial[at + HALF] = vec2<f32>(largest[g], total); }
  }
}
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let head = id.x % HEADS;
  let chunk = id.x / HEADS;
  let t = id.y;
  let node = control.nodes[t];
  let last = control.length + node.z;
  if (control.flags != 0u || t >= control.valid || chunk * CHUNK > last) { return; }
  let visible = min(CHUNK, last + 1u - chunk * CHUNK);
  let kv_row = head / GROUP * SLOTS;
  var scores: array<f32, ${CHUNK}>;
  var largest = -3.0e38;
  for (var p = 0u; p < visible; p++) {
    scores[p] = score((t * HEADS + head) * HALF, (kv_row + slot_of(chunk * CHUNK + p, node.w)) * HALF);
    largest = max(largest, scores[p]);
  }
  var total = 0.0;
  for (var p = 0u; p < visible; p++) {
    scores[p] = exp(scores[p] - largest);
    total += scores[p];
  }
  let at = ((t * HEADS + head) * CHUNKS + chunk) * PARTIAL;
  var sums: array<vec2<f32>, ${HEAD_SIZE // 2}>;
  for (var p = 0u; p < visible; p++) {
    let row = (KV_HEADS * SLOTS + kv_row + slot_of(chunk * CHUNK + p, node.w)) * HALF;
    for (var i = 0u; i < HALF; i++) { sums[i] = fma(vec2<f32>(scores[p]), key_value(row + i), sums[i]); }
  }
  for (var i = 0u; i < HALF; i++) { partial[at + i] = sums[i]; }
  partial[at + HALF] = vec2<f32>(largest, total);
}
#% endif
