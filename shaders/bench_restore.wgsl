// Puts WORDS words back to what was saved: a step's state, before a kernel that changes it is measured once more.
const WORDS = ${WORDS}u;

@group(0) @binding(0) var<storage, read> saved: array<u32>;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < WORDS) { state[id.x] = saved[id.x]; }
}
