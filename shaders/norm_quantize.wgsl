// RMSNorm, then 8-bit blocks: x = quantize(hidden / sqrt(mean(hidden^2) + eps) * weight).
// Barrier-free: one thread a block of 32, each adding all squares itself. Elsewhere the kernels before and behind do it.
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
const WORDS = ${K // 4}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> hidden: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> x: array<vec4<u32>>;

fn inverse_rms(squares: f32) -> f32 {
  return 1.0 / sqrt(squares / ${K}.0 + ${EPS});
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  let block = id.x;
  if (control.flags != 0u || t >= control.valid || block >= WORDS / 8u) { return; }
  var squares = vec4<f32>(0.0);
  for (var w = 0u; w < WORDS; w++) {
    let h = hidden[t * WORDS + w];
    squares = fma(h, h, squares);
  }
  let inverse = inverse_rms((squares.x + squares.y) + (squares.z + squares.w));
  var values: array<vec4<f32>, 8>;
  for (var i = 0u; i < 8u; i++) {
    values[i] = hidden[t * WORDS + block * 8u + i] * inverse * weight[block * 8u + i];
  }
  let stored = quantize32(values);
  let at = word_at(t, WORDS / 8u, block, 0u) / 4u;
  x[at] = stored.low;
  x[at + WORDS / 8u] = stored.high;
  x[at + 2u * (WORDS / 8u)] = stored.scale;
}
