// Copies COUNT times 16 bytes, what memory does at best: STRIDE threads side by side, each over several places.
const COUNT = ${COUNT}u;
const STRIDE = ${STRIDE}u;

@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  for (var i = id.x; i < COUNT; i += STRIDE) { target_[i] = source[i]; }
}
