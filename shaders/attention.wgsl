// Attention of a node over one chunk of logical positions, for the query heads of one KV head.
// partial[t][head][chunk] = sum of exp(score - maximum) * value, then (maximum, sum of exp). Masked positions are skipped.
#% if LANES > 1
// One workgroup a (KV head, chunk, node): DOTTERS threads share the dot products of a position with all query heads, then
// a thread a (head, position) adds them up and weighs, then one sums a four of HEADS_EACH heads over the positions in
// rising order. Every order is that of one thread or of DOTTERS: another number of threads changes no bit.
#% else
// Barrier-free: one thread a (KV head, chunk, node).
#% endif
#% include "include/control.wgsl"
#% include "include/attention.wgsl"
const EIGHTS = HALF / 4u;                 // a key is read in eights
@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
#% if LANES > 1
@group(0) @binding(2) var<storage, read> kv: array<${"vec2<u32>" if KV_F16 else "vec4<f32>"}>;
#% else
@group(0) @binding(2) var<storage, read> kv: array<${"vec4<u32>" if KV_F16 else "vec4<f32>"}>;
#% endif
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> partial: array<vec4<f32>>;

fn slot_of(position: u32, mask: u32) -> u32 {
  if (position < control.length) { return order[position]; }
  return order[control.length + ancestor(mask, position - control.length)];
}

#% if LANES > 1
#% set GROUP = HEADS // KV_HEADS
#% set ALL_FOURS = HEAD_SIZE // 4
#% set DOTTERS = [ALL_FOURS, 8 if GROUP <= 8 else 4, 2 if ALL_FOURS % 4 else 4 if ALL_FOURS % 8 else 8] | min
#% set PLACES = THREADS // DOTTERS
#% set ROUNDS = (CHUNK + PLACES - 1) // PLACES
#% set MAXIMA = [CHUNK, 8] | min
#% set SHARERS = [THREADS // ALL_FOURS, GROUP] | min
#% set HEADS_EACH = (GROUP + SHARERS - 1) // SHARERS
const THREADS = ${THREADS}u;
const DOTTERS = ${DOTTERS}u;
const PLACES = THREADS / DOTTERS;         // positions whose dot products are under way side by side
var<workgroup> rows: array<u32, ${CHUNK}>;                          // of keys, by position
var<workgroup> dots: array<f32, ${GROUP * CHUNK * (DOTTERS + 1)}>;  // [head][position][dotter], one to spare: banks
var<workgroup> scores: array<f32, ${GROUP * CHUNK}>;                // threads share no vector: writing one part may write all
var<workgroup> maxima: array<f32, ${GROUP * MAXIMA}>;               // of every CHUNK / MAXIMA positions of a head
var<workgroup> weights: array<f32, ${GROUP * CHUNK}>;

fn four(at: u32) -> vec4<f32> {
#% if KV_F16
  let words = kv[at];
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
#% else
  return kv[at];
#% endif
}

fn largest_of(head: u32) -> f32 {
  var largest = maxima[head * ${MAXIMA}u];
#% for m in range(1, MAXIMA)
  largest = max(largest, maxima[head * ${MAXIMA}u + ${m}u]);
#% endfor
  return largest;
}

fn weights_at(at: u32) -> vec4<f32> {
  return vec4<f32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let kv_head = group.x;
  let chunk = group.y;
  let t = group.z;
  let node = control.nodes[t];
  let last = control.length + node.z;
  if (control.flags != 0u || t >= control.valid || chunk * CHUNK > last) { return; }
  let visible = min(CHUNK, last + 1u - chunk * CHUNK);
  // Positions beyond the last are read at the last and get no weight.
  if (thread < CHUNK) { rows[thread] = kv_head * SLOTS + slot_of(min(chunk * CHUNK + thread, last), node.w); }
  workgroupBarrier();
  let query = (t * HEADS + kv_head * GROUP) * FOURS;
  let dotter = thread % DOTTERS;
  let place = thread / DOTTERS;
#% for round in range(ROUNDS)
  let key_${round} = rows[min(place + ${round}u * PLACES, CHUNK - 1u)] * FOURS;
#% for g in range(GROUP)
  var dot_${round}_${g} = 0.0;
#% endfor
#% endfor
#% for piece in range(ALL_FOURS // DOTTERS)
#% for round in range(ROUNDS)
  let k_${piece}_${round} = four(key_${round} + dotter + ${piece * DOTTERS}u);
#% endfor
#% for g in range(GROUP)
  {
    let part = q[query + ${g}u * FOURS + dotter + ${piece * DOTTERS}u];
#% for round in range(ROUNDS)
    dot_${round}_${g} = fma(part.x, k_${piece}_${round}.x, dot_${round}_${g});
    dot_${round}_${g} = fma(part.y, k_${piece}_${round}.y, dot_${round}_${g});
    dot_${round}_${g} = fma(part.z, k_${piece}_${round}.z, dot_${round}_${g});
    dot_${round}_${g} = fma(part.w, k_${piece}_${round}.w, dot_${round}_${g});
#% endfor
  }
#% endfor
#% endfor
#% for round in range(ROUNDS)
#% for g in range(GROUP)
  if (place + ${round}u * PLACES < CHUNK) {
    dots[(${g}u * CHUNK + place + ${round}u * PLACES) * (DOTTERS + 1u) + dotter] = dot_${round}_${g};
  }
#% endfor
#% endfor
  workgroupBarrier();
  for (var i = thread; i < GROUP * CHUNK; i += THREADS) {
    var score = 0.0;
    for (var j = 0u; j < DOTTERS; j++) { score += dots[i * (DOTTERS + 1u) + j]; }
    scores[i] = select(-3.0e38, score * ${SCALE}, i % CHUNK < visible);
  }
  workgroupBarrier();
  for (var i = thread; i < GROUP * ${MAXIMA}u; i += THREADS) {
    var most = scores[i * ${CHUNK // MAXIMA}u];
#% for p in range(1, CHUNK // MAXIMA)
    most = max(most, scores[i * ${CHUNK // MAXIMA}u + ${p}u]);
#% endfor
    maxima[i] = most;
  }
  workgroupBarrier();
  for (var i = thread; i < GROUP * CHUNK; i += THREADS) {
    weights[i] = select(0.0, exp(scores[i] - largest_of(i / CHUNK)), i % CHUNK < visible);
  }
  workgroupBarrier();
  if (thread >= ${SHARERS}u * FOURS) { return; }
  let column = thread % FOURS;
#% for k in range(HEADS_EACH)
  let head_${k} = min(thread / FOURS + ${k * SHARERS}u, GROUP - 1u);
  var sum_${k} = vec4<f32>(0.0);
  var total_${k} = 0.0;
#% endfor
  for (var p = 0u; p < CHUNK; p += 8u) {
#% for u in range(8)
    let value_${u} = four((KV_HEADS * SLOTS + rows[p + ${u}u]) * FOURS + column);
#% endfor
#% for k in range(HEADS_EACH)
#% for u in range(2)
    let weight_${k}_${u} = weights_at(head_${k} * CHUNK + p + ${4 * u}u);
#% for v in range(4)
    sum_${k} = fma(vec4<f32>(weight_${k}_${u}[${v}]), value_${4 * u + v}, sum_${k});
#% endfor
    total_${k} += (weight_${k}_${u}.x + weight_${k}_${u}.y) + (weight_${k}_${u}.z + weight_${k}_${u}.w);
#% endfor
#% endfor
  }
#% for k in range(HEADS_EACH)
  if (thread / FOURS + ${k * SHARERS}u < GROUP) {
    let at = ((t * HEADS + kv_head * GROUP + head_${k}) * CHUNKS + chunk) * PARTIAL;
    partial[at + column] = sum_${k};
    if (column == 0u) { partial[at + FOURS] = vec4<f32>(largest_of(head_${k}), total_${k}, 0.0, 0.0); }
  }
#% endfor
}
#% else
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

// Scores of the key at `row` for all query heads of the group.
fn score(query: u32, row: u32) -> array<f32, ${HEADS // KV_HEADS}> {
#% for g in range(HEADS // KV_HEADS)
  var sum_${g} = vec4<f32>(0.0);
#% endfor
  for (var i = 0u; i < EIGHTS; i++) {
    let key = four(row * EIGHTS + i);
#% for g in range(HEADS // KV_HEADS)
    sum_${g} = fma(q[query + ${g}u * EIGHTS * 2u + i * 2u], key.a, sum_${g});
    sum_${g} = fma(q[query + ${g}u * EIGHTS * 2u + i * 2u + 1u], key.b, sum_${g});
#% endfor
  }
  var out: array<f32, ${HEADS // KV_HEADS}>;
#% for g in range(HEADS // KV_HEADS)
  out[${g}] = ((sum_${g}.x + sum_${g}.y) + (sum_${g}.z + sum_${g}.w)) * ${SCALE};
#% endfor
  return out;
}

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
    scores[p] = score((t * HEADS + kv_head * GROUP) * EIGHTS * 2u, rows[p]);
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
  for (var i = 0u; i < EIGHTS; i++) {
#% for g in range(HEADS // KV_HEADS)
    var a_${g} = vec4<f32>(0.0);
    var b_${g} = vec4<f32>(0.0);
#% endfor
    for (var p = 0u; p < visible; p++) {
      let value = four((KV_HEADS * SLOTS + rows[p]) * EIGHTS + i);
#% for g in range(HEADS // KV_HEADS)
      a_${g} = fma(vec4<f32>(scores[p][${g}]), value.a, a_${g});
      b_${g} = fma(vec4<f32>(scores[p][${g}]), value.b, b_${g});
#% endfor
    }
#% for g in range(HEADS // KV_HEADS)
    let at_${g} = (first + ${g}u * CHUNKS) * PARTIAL + i * 2u;
    partial[at_${g}] = a_${g};
    partial[at_${g} + 1u] = b_${g};
#% endfor
  }
#% for g in range(HEADS // KV_HEADS)
  partial[(first + ${g}u * CHUNKS) * PARTIAL + FOURS] = vec4<f32>(largest_${g}, total_${g}, 0.0, 0.0);
#% endfor
}
#% endif
