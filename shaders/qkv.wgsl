// Query, key and value in one product, RoPE on the first two, keys and values into the cache at order[length + node].
// The two rows of a pair are what RoPE turns together; q and k keep pairs side by side, so that both have one order.
// x: [32][blocks] activations, q: [32][HEADS * HALF] pairs, kv: keys [KV_HEADS][SLOTS][HALF] pairs, then values alike.
// A workgroup handles THREADS / LANES pairs for a tile of TOKENS nodes.
#% from "include/product.wgsl" import bindings, accumulate, reduce, reduced with context
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

fn store(pair: u32, t: u32, row_a: u32, row_b: u32, sum_a: f32, sum_b: f32) {
  if (pair >= PAIRS || t >= control.valid) { return; }
  let head = pair / HALF;
  let i = pair % HALF;
  var value = vec2<f32>(sum_a, sum_b);
#% if BIAS
  value += vec2<f32>(bias[row_a], bias[row_b]);
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

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let first_token = group.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
  let lane = thread % LANES;
  let pair = group.x * (THREADS / LANES) + thread / LANES;
  let inside = min(pair, PAIRS - 1u);
  let head = inside / HALF;
#% if ROPE_PAIRS == "adjacent"
  let row_0 = inside * 2u;
  let row_1 = row_0 + 1u;
#% else
  let turned = head < HEADS + KV_HEADS;
  let row_0 = head * HALF * 2u + select(inside % HALF * 2u, inside % HALF, turned);
  let row_1 = row_0 + select(1u, HALF, turned);
#% endif
${accumulate()}
#% if LANES > 1
${reduce()}
  for (var t = lane; t < TOKENS; t += LANES) {
    store(pair, first_token + t, row_0, row_1, ${reduced(0)}, ${reduced(1)});
  }
#% else
#% for t in range(TOKENS)
  store(pair, first_token + ${t}u, row_0, row_1, sum_0_${t}, sum_1_${t});
#% endfor
#% endif
}
