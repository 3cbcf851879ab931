// Embedding: hidden[t] = dequantized row of the node's token. One thread for four elements.
#% include "include/control.wgsl"
const K = ${K}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read_write> hidden: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= K / 4u) { return; }
  let row = control.nodes[t].x;
  let block = row * (K / 32u) + id.x / 8u;
  let word = id.x % 8u;
#% if BITS == 4
  let packed = codes[block][word % 4u] >> (4u * (word / 4u));
  let affine = unpack2x16float(scales[block]);
  let code = vec4<f32>((vec4<u32>(packed) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
  hidden[t * (K / 4u) + id.x] = fma(code, vec4<f32>(affine.x), vec4<f32>(affine.y));
#% else
  let code = vec4<f32>(unpack4xI8(codes[block * 2u + word / 4u][word % 4u]));
  let pair = unpack2x16float(scales[block / 2u]);
  hidden[t * (K / 4u) + id.x] = code * select(pair.x, pair.y, block % 2u == 1u);
#% endif
}
