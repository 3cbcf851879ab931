// Gated feed-forward, first half: h = silu(gate) * up. The matrix, or a range of it, holds COUNT rows of gate and then the
// same rows of up: those from FIRST on, of M.
#% if LANES > 1
// A workgroup handles one block of 32 outputs for a tile of TOKENS nodes and quantizes it: out is the activation of `down`.
#% else
// Barrier-free: one thread an output, f32 values out; `quantize` follows.
#% endif
#% from "include/product.wgsl" import bindings, accumulate, reduce, reduced with context
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
const M = ${M}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;
${bindings()}
fn silu(gate: f32, up: f32) -> f32 {
  return gate / (1.0 + exp(-gate)) * up;
}

#% if LANES > 1
@group(0) @binding(4) var<storage, read_write> out: array<vec4<u32>>;
const GROUPS = THREADS / LANES;
var<workgroup> values: array<vec4<f32>, ${8 * TOKENS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let first_token = group.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
  let lane = thread % LANES;
  for (var start = 0u; start < 32u; start += GROUPS) {
    let row = start + thread / LANES;
    let row_0 = group.x * 32u + row;
    let row_1 = row_0 + COUNT;
${accumulate()}
${reduce()}
    for (var t = lane; t < TOKENS; t += LANES) {
      values[t * 8u + row / 4u][row % 4u] = silu(${reduced(0)}, ${reduced(1)});
    }
    workgroupBarrier();
  }
  for (var t = thread; t < TOKENS && first_token + t < control.valid; t += THREADS) {
    var block: array<vec4<f32>, 8>;
    for (var i = 0u; i < 8u; i++) { block[i] = values[t * 8u + i]; }
    let stored = quantize32(block);
    let at = ((first_token + t) * (M / 32u) + FIRST / 32u + group.x) * 3u;
    out[at] = stored.low;
    out[at + 1u] = stored.high;
    out[at + 2u] = stored.scale;
  }
}
#% else
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first_token = id.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid || id.x >= COUNT) { return; }
  let lane = 0u;
  let row_0 = id.x;
  let row_1 = row_0 + COUNT;
${accumulate()}
#% for t in range(TOKENS)
  if (first_token + ${t}u < control.valid) {
    out[(first_token + ${t}u) * M + FIRST + id.x] = silu(sum_0_${t}, sum_1_${t});
  }
#% endfor
}
#% endif
