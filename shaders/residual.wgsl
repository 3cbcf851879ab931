// The end of half a layer: hidden[t][row] += sum, then the activation of the next product, x = quantize(hidden * weight),
// whose blocks bring the sum of the squares of hidden: the root mean square divides what the next product adds up.
// The matrix, or a range of its rows: COUNT rows from FIRST on, of M.
// A workgroup handles a block of 32 rows for a tile of TOKENS nodes, in rounds of ROWS rows for each group of lanes.
#% from "include/product.wgsl" import bindings, entry, accumulate, reduce, finished, OWNED with context
#% if SUBGROUPS
enable subgroups;
#% endif
#% include "include/control.wgsl"
#% include "include/quantize.wgsl"
#% include "include/quantize_shared.wgsl"
const M = ${M}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;
${bindings()}
@group(0) @binding(4) var<storage, read_write> hidden: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> x_next: array<u32>;
var<workgroup> values: array<f32, ${32 * TOKENS}>; // by token, then row of the block: threads share no vector

${entry()}
  for (var start = 0u; start < 32u; start += GROUPS * ${ROWS}u) {
    let first_row = start + group * ${ROWS}u;
#% for r in range(ROWS)
    let row_${r} = workgroup.x * 32u + first_row + ${r}u;
#% endfor
${accumulate()}
${reduce()}
    if (owner) {
#% for j in range(OWNED)
      values[owned_token * 32u + first_row + owned_row + ${j}u] = ${finished(j)};
#% endfor
    }
  }
  workgroupBarrier();
  let t = first_token + thread / 8u;
  let word = (FIRST / 32u + workgroup.x) * 8u + thread % 8u;
  let writes = thread < QUANTIZERS && t < control.valid;
  var value = vec4<f32>(0.0);
  if (writes) {
    let at = thread * 4u;
    value = hidden[t * (M / 4u) + word] + vec4<f32>(values[at], values[at + 1u], values[at + 2u], values[at + 3u]);
    hidden[t * (M / 4u) + word] = value;
  }
  let stored = quantize_shared(thread, value * weight[word], squares4(value));
  if (writes) {
    x_next[word_at(t, M / 32u, word / 8u, thread % 8u)] = stored.word;
    if (thread % 8u < 4u) { x_next[word_at(t, M / 32u, word / 8u, 8u + thread % 8u)] = stored.scale[thread % 4u]; }
  }
}
