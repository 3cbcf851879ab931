// What a request asks of sampling, as the host writes it once (pyweb/plan/sampling.py lays it out), and the distance of a
// token: (largest logit - logit) / temperature, never negative. Both roundings are exact ones, so a distance has the same
// bits in every kernel. A token's probability is proportional to e^-distance.
struct Sampling {
  seed: vec2<u32>,
  inverse_temperature: f32,
  furthest: f32,             // tokens beyond this distance are out
  top_k: u32,                // 0: off
  top_p: u32,                // in units of 2^-32; 0: off
  repetition: f32,
  inverse_repetition: f32,
  presence: f32,
  frequency: f32,
  biases: u32,               // entries of the list
}

// A distance in units of 2^-26. Distances from 64 up are one: e^-64 is never drawn.
fn fixed(distance: f32) -> u32 {
  return u32(min(distance, 0x1.fffffep5) * 0x1p26);
}
