// top-k and top-p: cut[t] = the greatest distance that stays in, in units of 2^-26 (include/sampling.wgsl).
// Both are the least distance D for which the tokens with distance <= D weigh at least a goal: top-k gives each token
// the weight 1 and has the goal k; top-p gives the tokens within top-k their probability and has the goal p of the sum.
// Probabilities are integers in units of 2^-40 of the likeliest one, sums have 64 bits: exact, hence the same in any
// order. D is found 8 bits at a time: a histogram of the weights by the next digit, and the digit in which the running
// sum reaches the goal. One workgroup a node.
#% include "include/control.wgsl"
#% include "include/sampling.wgsl"
#% include "include/random.wgsl"
#% include "include/peak.wgsl"
const M = ${M}u;
const SEGMENTS = ${SEGMENTS}u;
const THREADS = ${THREADS}u;
const ALL = 0xffffffffu;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> peak: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> cut: array<u32>;

var<workgroup> low: array<atomic<u32>, 256>;         // a bin's sum is high * 2^32 + low
var<workgroup> high: array<atomic<u32>, 256>;
var<workgroup> sums: array<vec2<u32>, 16>;           // of 16 bins each
var<workgroup> found: vec4<u32>;                     // digits so far, goal (low, high) within them, done

// 64-bit numbers are (low, high).
fn add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sum = a.x + b.x;
  return vec2<u32>(sum, a.y + b.y + u32(sum < a.x));
}

fn subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

fn less(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn product(a: u32, b: u32) -> vec2<u32> {
  let middle = (a >> 16u) * (b & 0xffffu) + (((a & 0xffffu) * (b & 0xffffu)) >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

// e^-distance in units of 2^-40, rounded down from its f32.
fn mass(distance: f32) -> vec2<u32> {
  let bits = bitcast<u32>(power_of_e(-min(distance, 64.0)));
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  let shift = 127u - (bits >> 23u);                  // 0 only for 1
  if (shift > 40u) { return vec2<u32>(0u, 0u); }
  let whole = vec2<u32>(mantissa << 17u, mantissa >> 15u);
  if (shift == 0u) { return whole; }
  if (shift >= 32u) { return vec2<u32>(whole.y >> (shift - 32u), 0u); }
  return vec2<u32>((whole.x >> shift) | (whole.y << (32u - shift)), whole.y >> shift);
}

// Integers add up to the same sum and the same number of carries in any order.
fn collect(bin: u32, weight: vec2<u32>) {
  let before = atomicAdd(&low[bin], weight.x);
  let more = weight.y + u32(before + weight.x < before);
  if (more != 0u) { atomicAdd(&high[bin], more); }
}

fn weight_of(bin: u32) -> vec2<u32> {
  return vec2<u32>(atomicLoad(&low[bin]), atomicLoad(&high[bin]));
}

// Moves `found` on by one digit; `by_mass` and the first digit make the goal a share of the whole.
fn descend(first: bool, by_mass: bool) {
  var goal = found.yz;
  if (first && by_mass) {
    var whole = vec2<u32>(0u, 0u);
    for (var i = 0u; i < 16u; i++) { whole = add(whole, sums[i]); }
    goal = add(product(whole.y, sampling.top_p), vec2<u32>(product(whole.x, sampling.top_p).y, 0u));
  }
  var part = 0u;
  for (; part < 16u && less(sums[part], goal); part++) { goal = subtract(goal, sums[part]); }
  if (part == 16u) {                                 // fewer tokens than k
    found = vec4<u32>(ALL, 0u, 0u, 1u);
    return;
  }
  var bin = part * 16u;
  for (; less(weight_of(bin), goal); bin++) { goal = subtract(goal, weight_of(bin)); }
  let whole_bin = all(weight_of(bin) == goal);       // nothing left to divide
  found = vec4<u32>((found.x << 8u) | bin, goal, u32(whole_bin));
}

// The least D whose tokens weigh the goal, among those with distance <= limit. All threads call it together.
fn least(t: u32, peak_logit: f32, thread: u32, by_mass: bool, limit: u32, goal: u32) -> u32 {
  if (thread == 0u) { found = vec4<u32>(0u, goal, 0u, 0u); }
  for (var shift = 24u; ; shift -= 8u) {
    for (var i = thread; i < 256u; i += THREADS) {
      atomicStore(&low[i], 0u);
      atomicStore(&high[i], 0u);
    }
    let digits = workgroupUniformLoad(&found).x;
    for (var i = thread; i < M; i += THREADS) {
      let distance = (peak_logit - logits[t * M + i]) * sampling.inverse_temperature;
      let key = fixed(distance);
      if (key <= limit && (shift == 24u || (key >> ((shift + 8u) & 31u)) == digits)) {
        var weight = vec2<u32>(1u, 0u);
        if (by_mass) { weight = mass(distance); }
        collect((key >> shift) & 255u, weight);
      }
    }
    workgroupBarrier();
    for (var i = thread; i < 16u; i += THREADS) {
      var sum = vec2<u32>(0u, 0u);
      for (var bin = i * 16u; bin < i * 16u + 16u; bin++) { sum = add(sum, weight_of(bin)); }
      sums[i] = sum;
    }
    workgroupBarrier();
    if (thread == 0u) { descend(shift == 24u, by_mass); }
    let now = workgroupUniformLoad(&found);
    if (now.w == 1u || shift == 0u) {
      return select((now.x << shift) | ((1u << shift) - 1u), ALL, now.x == ALL);
    }
  }
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.x;
  if (control.flags != 0u || t >= control.valid) { return; }
  let peak_logit = largest(t);
  var limit = ALL;
  if (sampling.top_k != 0u) { limit = least(t, peak_logit, thread, false, ALL, sampling.top_k); }
  if (sampling.top_p != 0u) { limit = min(limit, least(t, peak_logit, thread, true, limit, 0u)); }
  if (thread == 0u) { cut[t] = limit; }
}
