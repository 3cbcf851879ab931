// Brings counts[token] = (times in the prompt, times in the reply) up to the context's end: the tokens from
// cursor[0] on. One workgroup, so that the cursor moves after all threads read it; a step brings 1 to 9 tokens, the first
// one the prompt.
#% include "include/control.wgsl"
#% include "include/request.wgsl"

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> request: Request;
@group(0) @binding(2) var<storage, read> context: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> cursor: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32) {
  if (control.flags != 0u) { return; }
  for (var i = cursor[0] + thread; i < control.context_length; i += 64u) {
    atomicAdd(&counts[context[i] * 2u + u32(i >= request.prompt_length)], 1u);
  }
  storageBarrier();
  if (thread == 0u) { cursor[0] = control.context_length; }
}
