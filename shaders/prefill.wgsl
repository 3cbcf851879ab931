// Moves a prefill on: commits the chunk just run and lays out the next WIDTH tokens as a chain, each node the child of
// the one before. After the last chunk the prompt's final token is left as node 0 of the first decode step.
#% include "include/control.wgsl"
#% include "include/request.wgsl"

@group(0) @binding(0) var<storage, read_write> control: Control;
@group(0) @binding(1) var<storage, read> request: Request;
@group(0) @binding(2) var<storage, read> context: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
  let length = control.length + control.valid;
  storageBarrier();
  let left = request.prompt_length - 1u - min(request.prompt_length - 1u, length);
  let count = max(min(${WIDTH}u, left), 1u);
  if (i < count) {
    let mask = select((1u << (i + 1u)) - 1u, 0xffffffffu, i == 31u);
    control.nodes[i] = vec4<u32>(context[length + i], max(i, 1u) - 1u, i, mask);
  }
  workgroupBarrier();
  if (i == 0u) {
    control.length = length;
    control.valid = count;
  }
}
