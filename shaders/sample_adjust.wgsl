// Penalties and bias, in place. With p and r the times a token stands in the prompt and in the reply:
//   p + r > 0: logit = logit > 0 ? logit / repetition : logit * repetition
//   logit = logit - frequency * r - (r > 0 ? presence : 0) + bias
// A node's ancestors and itself count as reply, as they would have been emitted; node 0 is in the context already.
// One thread a token and node.
#% include "include/control.wgsl"
#% include "include/sampling.wgsl"
const M = ${M}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<storage, read> counts: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let token = id.x;
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || token >= M) { return; }
  var count = counts[token];
  for (var rest = control.nodes[t].w & 0xfffffffeu; rest != 0u; rest &= rest - 1u) {
    count.y += u32(control.nodes[firstTrailingBit(rest)].x == token);
  }
  var logit = logits[t * M + token];
  if (count.x + count.y > 0u) {
    logit *= select(sampling.repetition, sampling.inverse_repetition, logit > 0.0);
  }
  logit = fma(-sampling.frequency, f32(count.y), logit);
  logit -= select(0.0, sampling.presence, count.y > 0u);
  logits[t * M + token] = logit + bias[token];
}
