// A vector of a file in 16 bits (KIND) to f32. One thread a value.
struct Range {
  first: u32,               // value of the target where the source's first goes
  count: u32,
}

@group(0) @binding(0) var<storage, read> range: Range;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= range.count) { return; }
  let bits = (source[id.x / 2u] >> (16u * (id.x % 2u))) & 0xffffu;
#% if KIND == "F16"
  out[range.first + id.x] = unpack2x16float(bits).x;
#% else
  out[range.first + id.x] = bitcast<f32>(bits << 16u);
#% endif
}
