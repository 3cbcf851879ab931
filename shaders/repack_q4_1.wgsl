// GGUF Q4_1 to the 4-bit layout. Source block: f16 scale, f16 offset, 16 bytes of nibbles (5 words); the nibble order is
// the runtime's own, so codes and (scale, offset) only part ways. One thread a block.
#% include "include/repack.wgsl"
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> scales: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= range.blocks) { return; }
  let at = id.x * 5u;
  scales[range.first + id.x] = source[at];
  codes[range.first + id.x] = vec4<u32>(source[at + 1u], source[at + 2u], source[at + 3u], source[at + 4u]);
}
