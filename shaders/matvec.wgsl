// A quantized matrix times activations: out[t][row] = sum, or out[t][row] += sum with RESIDUAL.
// The matrix, or a range of its rows: COUNT rows from FIRST on, of M.
// A workgroup handles THREADS / LANES groups of ROWS rows for a tile of TOKENS nodes.
#% from "include/product.wgsl" import bindings, entry, accumulate, reduce, finished, OWNED with context
#% if SUBGROUPS
enable subgroups;
#% endif
#% include "include/control.wgsl"
const M = ${M}u;
const FIRST = ${FIRST}u;
const COUNT = ${COUNT}u;
${bindings()}
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

fn store(row: u32, t: u32, sum: f32) {
  if (row >= COUNT || t >= control.valid) { return; }
  let at = t * M + FIRST + row;
  out[at] = ${"out[at] + sum" if RESIDUAL else "sum"};
}

#% if LANES > 1
${entry()}
  let first_row = (workgroup.x * GROUPS + group) * ${ROWS}u;
#% for r in range(ROWS)
  let row_${r} = min(first_row + ${r}u, COUNT - 1u);
#% endfor
${accumulate()}
${reduce()}
  if (owner) {
#% for j in range(OWNED)
    store(first_row + owned_row + ${j}u, first_token + owned_token, ${finished(j)});
#% endfor
  }
}
#% else
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first_token = id.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
  let lane = 0u;
  let first_row = id.x * ${ROWS}u;
#% for r in range(ROWS)
  let row_${r} = min(first_row + ${r}u, COUNT - 1u);
#% endfor
${accumulate()}
#% for t in range(TOKENS)
#% for r in range(ROWS)
  store(first_row + ${r}u, first_token + ${t}u, sum_${t}_${r});
#% endfor
#% endfor
}
#% endif
