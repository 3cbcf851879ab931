// 8-bit blocks of an f32 activation, for software adapters: one thread a block of 32, no barriers.
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
const BLOCKS = ${K // 32}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> values: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<vec4<u32>>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= BLOCKS) { return; }
  let block = t * BLOCKS + id.x;
  var mine: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) { mine[i] = values[block * 8u + i]; }
  let stored = quantize32(mine);
  let at = word_at(t, BLOCKS, id.x, 0u) / 4u;
  x[at] = stored.low;
  x[at + BLOCKS] = stored.high;
  x[at + 2u * BLOCKS] = stored.scale;
}
