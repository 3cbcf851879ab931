// Once a request: nothing counted yet. One thread a token of the vocabulary.
const M = ${M}u;

@group(0) @binding(0) var<storage, read_write> places: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < M) { places[id.x] = vec4<u32>(0u, 0u, 0xffffffffu, 0u); }
}
