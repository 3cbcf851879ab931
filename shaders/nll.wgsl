// Negative log-likelihood of the token that follows each node: nll[position] = log(sum exp(logit - max)) + max - logit.
// One workgroup a node; sums in a fixed order.
#% include "include/control.wgsl"
const M = ${M}u;
const THREADS = ${THREADS}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> context: array<u32>;
@group(0) @binding(3) var<storage, read_write> nll: array<f32>;
var<workgroup> partial: array<f32, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.x;
  if (t >= control.valid) { return; }
  var largest = -3.0e38;
  for (var i = thread; i < M; i += THREADS) { largest = max(largest, logits[t * M + i]); }
  partial[thread] = largest;
  workgroupBarrier();
  for (var i = 0u; i < THREADS; i++) { largest = max(largest, partial[i]); }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = thread; i < M; i += THREADS) { sum += exp(logits[t * M + i] - largest); }
  partial[thread] = sum;
  workgroupBarrier();
  if (thread != 0u) { return; }
  var total = 0.0;
  for (var i = 0u; i < THREADS; i++) { total += partial[i]; }
  let position = control.length + control.nodes[t].z;
  nll[position] = log(total) + largest - logits[t * M + context[position + 1u]];
}
