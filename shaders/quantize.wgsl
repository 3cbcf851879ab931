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
  var largest = 0.0;
  for (var i = 0u; i < 8u; i++) { largest = max(largest, max4(values[block * 8u + i])); }
  let scale = block_scale(largest);
  var sum = 0;
  for (var half = 0u; half < 2u; half++) {
    var words = vec4<u32>(0u);
    for (var i = 0u; i < 4u; i++) {
      let codes = quantize4(values[block * 8u + half * 4u + i], scale);
      sum += sum4(codes);
      words[i] = pack4xI8(codes);
    }
    x[block * 3u + half] = words;
  }
  x[block * 3u + 2u] = scale_words(scale, sum);
}
