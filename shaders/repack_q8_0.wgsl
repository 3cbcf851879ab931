// GGUF Q8_0 to the 8-bit layout. Source block: f16 scale, 32 signed bytes (34 bytes, so every other one is unaligned).
// One thread two blocks, since two scales share a word; `first` and every range but the last are even.
#% include "include/repack.wgsl"
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> scales: array<u32>;

// The word that starts at half-word `half`.
fn word(half: u32) -> u32 {
  let low = source[half / 2u];
  if (half % 2u == 0u) { return low; }
  return (low >> 16u) | (source[half / 2u + 1u] << 16u);
}

fn four(half: u32) -> vec4<u32> {
  return vec4<u32>(word(half), word(half + 2u), word(half + 4u), word(half + 6u));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let block = id.x * 2u;
  if (block >= range.blocks) { return; }
  var packed = 0u;
  for (var i = 0u; i < 2u && block + i < range.blocks; i++) {
    let half = (block + i) * 17u;
    packed |= (word(half) & 0xffffu) << (16u * i);
    let target_block = (range.first + block + i) * 2u;
    codes[target_block] = four(half + 1u);
    codes[target_block + 1u] = four(half + 9u);
  }
  scales[(range.first + block) / 2u] = packed;
}
