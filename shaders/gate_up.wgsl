// Gated feed-forward, first half: h = silu(gate) * up. The matrix, or a range of it, holds COUNT rows of gate and then the
// same rows of up: those from FIRST on, of M.
#% if LANES > 1
// A workgroup handles one block of 32 outputs for a tile of TOKENS nodes, in rounds of ROWS / 2 outputs for each group of
// lanes, and quantizes it: out is the activation of `down`.
#% else
// Barrier-free: one thread an output, f32 values out; `quantize` follows.
#% endif
#% from "include/product.wgsl" import bindings, entry, accumulate, reduce, finished, OWNED with context
#% if SUBGROUPS
enable subgroups;
#% endif
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
#% if LANES > 1
#% include "include/quantize_shared.wgsl"
#% endif
const M = ${M}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;
${bindings()}

#% if LANES > 1
@group(0) @binding(4) var<storage, read_write> x_next: array<u32>;
var<workgroup> values: array<f32, ${2 * 32 * TOKENS}>; // by token: gates, then ups; threads share no vector

fn four(at: u32) -> vec4<f32> {
  return vec4<f32>(values[at], values[at + 1u], values[at + 2u], values[at + 3u]);
}

fn silu4(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  return gate / (1.0 + exp(-gate)) * up;
}

${entry()}
  for (var start = 0u; start < 32u; start += GROUPS * ${ROWS // 2}u) {
    let first_row = start + group * ${ROWS // 2}u;
#% for r in range(ROWS)
    let row_${r} = workgroup.x * 32u + first_row + ${r // 2}u${" + COUNT" if r % 2 else ""};
#% endfor
${accumulate()}
${reduce()}
    if (owner) {
#% for j in range(OWNED)
      let row_of_${j} = first_row + (owned_row + ${j}u) / 2u;
      values[owned_token * 64u + (owned_row + ${j}u) % 2u * 32u + row_of_${j}] = ${finished(j)};
#% endfor
    }
  }
  workgroupBarrier();
  let t = first_token + thread / 8u;
  let word = thread % 8u;
  let writes = thread < QUANTIZERS && t < control.valid;
  var value = vec4<f32>(0.0);
  if (writes) { value = silu4(four(thread / 8u * 64u + word * 4u), four(thread / 8u * 64u + 32u + word * 4u)); }
  let stored = quantize_shared(thread, value, 0.0);
  if (writes) {
    let block = FIRST / 32u + workgroup.x;
    x_next[word_at(t, M / 32u, block, word)] = stored.word;
    if (word < 4u) { x_next[word_at(t, M / 32u, block, 8u + word)] = stored.scale[word]; }
  }
}
#% else
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

fn silu(gate: f32, up: f32) -> f32 {
  return gate / (1.0 + exp(-gate)) * up;
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first_token = id.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid || id.x >= COUNT) { return; }
  let lane = 0u;
  let row_0 = id.x;
  let row_1 = row_0 + COUNT;
${accumulate()}
#% for t in range(TOKENS)
  if (first_token + ${t}u < control.valid) {
    out[(first_token + ${t}u) * M + FIRST + id.x] = silu(sum_${t}_0, sum_${t}_1);
  }
#% endfor
}
#% endif
