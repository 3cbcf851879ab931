// Blocks of a file (KIND) to a runtime layout; pyweb/weights/blocks.py and layout.py are the numpy twins. One thread two
// blocks of 32, since two scales may share a word; `first` and every range but the last are even.
struct Range {
  first: u32,               // block of the target where the source's first goes
  blocks: u32,
}

// w = scale * code + offset; codes are bytes in element order, scales (of elements 0..15 and 16..31) and offset f16 bits.
struct Block {
  low: vec4<u32>,
  high: vec4<u32>,
  scales: vec2<u32>,
  offset: u32,
}

@group(0) @binding(0) var<storage, read> range: Range;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> scales: array<u32>;

#% include "include/repack.wgsl"
#% if KIND in ("F16", "BF16", "F32")
#% include "include/repack_float.wgsl"
#% elif KIND in ("Q4_K", "Q5_K", "Q6_K")
#% include "include/repack_k.wgsl"
#% else
#% include "include/repack_32.wgsl"
#% endif

fn store(at: u32, block: Block) {
#% if BITS == 4
  codes[at] = block.low | (block.high << vec4<u32>(4u));
#% else
  codes[at * 2u] = block.low;
  codes[at * 2u + 1u] = block.high;
#% endif
#% if SCALES == 2 and OFFSET
  scales[at * 2u] = block.scales.x | (block.scales.y << 16u);
  scales[at * 2u + 1u] = block.offset;
#% elif SCALES == 2
  scales[at] = block.scales.x | (block.scales.y << 16u);
#% elif OFFSET
  scales[at] = block.scales.x | (block.offset << 16u);
#% endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let block = id.x * 2u;
  if (block >= range.blocks) { return; }
  let at = range.first + block;
  let one = block_at(block);
  store(at, one);
  var pair = one.scales.x;
  if (block + 1u < range.blocks) {
    let two = block_at(block + 1u);
    store(at + 1u, two);
    pair |= two.scales.x << 16u;
  }
#% if SCALES == 1 and not OFFSET
  scales[at / 2u] = pair;
#% endif
}
