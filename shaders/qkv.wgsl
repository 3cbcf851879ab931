// Query, key and value in one product, RoPE on the first two, keys and values into the cache at order[length + node].
// The two rows of a pair are what RoPE turns together; q and k keep pairs side by side, so that both have one order.
// x: [32][blocks] activations, q: [32][HEADS * HALF] pairs, kv: keys [KV_HEADS][SLOTS][HALF] pairs, then values alike.
// A workgroup handles THREADS / LANES groups of ROWS / 2 pairs for a tile of TOKENS nodes.
#% from "include/product.wgsl" import bindings, entry, accumulate, reduce, finished, OWNED with context
#% if SUBGROUPS
enable subgroups;
#% endif
#% include "include/control.wgsl"
const HEADS = ${HEADS}u;
const KV_HEADS = ${KV_HEADS}u;
const HALF = ${HEAD_SIZE // 2}u;
const SLOTS = ${SLOTS}u;
const PAIRS = (HEADS + 2u * KV_HEADS) * HALF;
${bindings()}
@group(0) @binding(4) var<storage, read> rope: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read_write> q: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> kv: array<${"u32" if KV_F16 else "vec2<f32>"}>;
@group(0) @binding(7) var<storage, read> order: array<u32>;
#% if BIAS
@group(0) @binding(8) var<storage, read> bias: array<f32>;
#% endif

// The matrix's rows of a pair.
fn rows_of(pair: u32) -> vec2<u32> {
#% if ROPE_PAIRS == "adjacent"
  return vec2<u32>(pair * 2u, pair * 2u + 1u);
#% else
  let head = pair / HALF;
  let turned = head < HEADS + KV_HEADS;
  let first = head * HALF * 2u + select(pair % HALF * 2u, pair % HALF, turned);
  return vec2<u32>(first, first + select(1u, HALF, turned));
#% endif
}

fn store(pair: u32, t: u32, sums: vec2<f32>) {
  if (pair >= PAIRS || t >= control.valid) { return; }
  let head = pair / HALF;
  let i = pair % HALF;
  var value = sums;
#% if BIAS
  let rows = rows_of(pair);
  value += vec2<f32>(bias[rows.x], bias[rows.y]);
#% endif
  if (head < HEADS + KV_HEADS) {
    let turn = rope[(control.length + control.nodes[t].z) * HALF + i];
    value = vec2<f32>(fma(value.x, turn.x, -(value.y * turn.y)), fma(value.x, turn.y, value.y * turn.x));
  }
  if (head < HEADS) {
    q[t * HEADS * HALF + pair] = value;
    return;
  }
  let slot = (head - HEADS) * SLOTS + order[control.length + t];
  kv[slot * HALF + i] = ${"pack2x16float(value)" if KV_F16 else "value"};
}

#% if LANES > 1
const GROUP_PAIRS = ${ROWS // 2}u;
var<workgroup> values: array<f32, ${TOKENS * THREADS // LANES * ROWS}>; // by token, then row of the workgroup

${entry()}
  let first_pair = (workgroup.x * GROUPS + group) * GROUP_PAIRS;
#% for r in range(0, ROWS, 2)
  let rows_${r} = rows_of(min(first_pair + ${r // 2}u, PAIRS - 1u));
  let row_${r} = rows_${r}.x;
  let row_${r + 1} = rows_${r}.y;
#% endfor
${accumulate()}
${reduce()}
  if (owner) {
#% for j in range(OWNED)
    values[(owned_token * GROUPS + group) * ${ROWS}u + owned_row + ${j}u] = ${finished(j)};
#% endfor
  }
  workgroupBarrier();
  for (var i = thread; i < TOKENS * GROUPS * GROUP_PAIRS; i += THREADS) {
    let t = i / (GROUPS * GROUP_PAIRS);
    let pair = workgroup.x * GROUPS * GROUP_PAIRS + i % (GROUPS * GROUP_PAIRS);
    store(pair, first_token + t, vec2<f32>(values[i * 2u], values[i * 2u + 1u]));
  }
}
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first_token = id.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
  let lane = 0u;
  let rows = rows_of(min(id.x, PAIRS - 1u));
  let row_0 = rows.x;
  let row_1 = rows.y;
${accumulate()}
#% for t in range(TOKENS)
  store(id.x, first_token + ${t}u, vec2<f32>(sum_${t}_0, sum_${t}_1));
#% endfor
}
#% endif
