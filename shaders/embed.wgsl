// Embedding: hidden[t] = dequantized row of the node's token. One thread for four elements. The table, or a range of its
// rows: COUNT from FIRST on; nodes of other rows are left alone.
#% if QUANTIZE
// Behind it the activation of the first product, as in residual.wgsl: x = quantize(hidden * weight).
#% endif
#% from "include/scales.wgsl" import scales_at with context
#% include "include/control.wgsl"
#% if QUANTIZE
#% include "include/quantize.wgsl"
#% include "include/quantize_shared.wgsl"
#% endif
const K = ${K}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read_write> hidden: array<vec4<f32>>;
#% if QUANTIZE
@group(0) @binding(4) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> x: array<u32>;
#% endif

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let t = group.y;
  if (control.flags != 0u || t >= control.valid) { return; }
  let row = control.nodes[t].x - FIRST;
  if (row >= COUNT) { return; }
  let inside = id.x < K / 4u;
  let block = row * (K / 32u) + min(id.x, K / 4u - 1u) / 8u;
  let word = id.x % 8u;
${scales_at("block", "")}
#% if BITS == 4
  let packed = codes[block][word % 4u] >> (4u * (word / 4u));
  let code = vec4<f32>((vec4<u32>(packed) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
#% else
  let code = vec4<f32>(unpack4xI8(codes[block * 2u + word / 4u][word % 4u]));
#% endif
#% if SCALES == 2
  let factor = vec4<f32>(select(scale, second_scale, word >= 4u));
#% else
  let factor = vec4<f32>(scale);
#% endif
  let value = ${"fma(code, factor, vec4<f32>(offset))" if OFFSET else "code * factor"};
  if (inside) { hidden[t * (K / 4u) + id.x] = value; }
#% if QUANTIZE
  let stored = quantize_shared(thread, select(vec4<f32>(0.0), value * weight[min(id.x, K / 4u - 1u)], inside), squares4(value));
  if (inside) {
    x[word_at(t, K / 32u, id.x / 8u, word)] = stored.word;
    if (word < 4u) { x[word_at(t, K / 32u, id.x / 8u, 8u + word)] = stored.scale[word]; }
  }
#% endif
}
