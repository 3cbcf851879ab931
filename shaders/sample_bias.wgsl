// Spreads the request's list of (token, bits of its bias) over the vocabulary. Tokens differ. One thread an entry.
#% include "include/sampling.wgsl"

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<storage, read> list: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> bias: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < sampling.biases) { bias[list[id.x].x] = bitcast<f32>(list[id.x].y); }
}
