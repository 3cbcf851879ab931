// The draw: the token of a node that wins the race min over tokens of E * e^distance, E exponential noise of (seed,
// position, token). That is Gumbel-max, argmax of logit / temperature - log E, without its second logarithm; a token wins
// with its probability. Out are tokens beyond the cut of top-k and top-p, and beyond `furthest` (min-p, or 50: further
// ones can't win, as E lies between 2^-64 and 44.4).
// best[t][segment] = (complement of the bits of the least value, id), as `choose` leaves it.
#% include "include/control.wgsl"
#% include "include/sampling.wgsl"
#% include "include/random.wgsl"
#% include "include/peak.wgsl"
const M = ${M}u;
const SEGMENTS = ${SEGMENTS}u;
const THREADS = ${THREADS}u;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> peak: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> best: array<vec2<u32>>;
#% if CUT
@group(0) @binding(5) var<storage, read> cut: array<u32>;
#% endif

// The best of the tokens first, first + stride, ...
fn scan(t: u32, first: u32, stride: u32) -> vec2<u32> {
  let peak_logit = largest(t);
  let position = control.length + control.nodes[t].z + 1u;
  var found = vec2<u32>(0u, 0u);
  for (var i = first; i < M; i += stride) {
    let distance = (peak_logit - logits[t * M + i]) * sampling.inverse_temperature;
    if (distance > sampling.furthest) { continue; }
#% if CUT
    if (fixed(distance) > cut[t]) { continue; }
#% endif
    let value = exponential(threefry(sampling.seed, vec2<u32>(position, i))) * power_of_e(distance);
    found = better(found, vec2<u32>(~bitcast<u32>(value), i));
  }
  return found;
}

#% include "include/best.wgsl"
