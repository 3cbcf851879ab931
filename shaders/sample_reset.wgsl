// Start of a request: no token counted, no bias. One thread a token of the vocabulary.
const M = ${M}u;

@group(0) @binding(0) var<storage, read_write> counts: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> cursor: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x == 0u) { cursor[0] = 0u; }
  if (id.x >= M) { return; }
  counts[id.x] = vec2<u32>(0u, 0u);
  bias[id.x] = 0.0;
}
