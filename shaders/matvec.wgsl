// A quantized matrix times activations: out[t][row] = residual[t][row] + sum, or the sum alone (LM head, RESIDUAL 0).
// The matrix, or a range of its rows: COUNT rows from FIRST on, of M.
// A workgroup handles THREADS / LANES groups of ROWS rows for a tile of TOKENS nodes.
#% from "include/product.wgsl" import bindings, accumulate, reduce, reduced with context
#% include "include/control.wgsl"
const M = ${M}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;
${bindings()}
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
#% if RESIDUAL
@group(0) @binding(5) var<storage, read> residual: array<f32>;
#% endif

fn store(row: u32, t: u32, sum: f32) {
  if (row >= COUNT || t >= control.valid) { return; }
  let at = t * M + FIRST + row;
  out[at] = ${"residual[at] + sum" if RESIDUAL else "sum"};
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let first_token = group.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
  let lane = thread % LANES;
  let first_row = (group.x * (THREADS / LANES) + thread / LANES) * ${ROWS}u;
#% for r in range(ROWS)
  let row_${r} = min(first_row + ${r}u, COUNT - 1u);
#% endfor
${accumulate()}
#% if LANES > 1
${reduce()}
  for (var t = lane; t < TOKENS; t += LANES) {
#% for r in range(ROWS)
    store(first_row + ${r}u, first_token + t, ${reduced(r)});
#% endfor
  }
#% else
#% for t in range(TOKENS)
#% for r in range(ROWS)
  store(first_row + ${r}u, first_token + ${t}u, sum_${r}_${t});
#% endfor
#% endfor
#% endif
}
