// Embedding: hidden[t] = dequantized row of the node's token. One thread for four elements. The table, or a range of its
// rows: COUNT from FIRST on; nodes of other rows are left alone.
#% from "include/scales.wgsl" import scales_at with context
#% include "include/control.wgsl"
const K = ${K}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read_write> hidden: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= K / 4u) { return; }
  let row = control.nodes[t].x - FIRST;
  if (row >= COUNT) { return; }
  let block = row * (K / 32u) + id.x / 8u;
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
  hidden[t * (K / 4u) + id.x] = ${"fma(code, factor, vec4<f32>(offset))" if OFFSET else "code * factor"};
}
