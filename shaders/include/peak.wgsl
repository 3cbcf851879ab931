// The largest logit of a node, from the order-preserving bits that `choose` left in peak[t][segment].
fn largest(t: u32) -> f32 {
  var found = 0u;
  for (var i = 0u; i < SEGMENTS; i++) { found = max(found, peak[t * SEGMENTS + i].x); }
  return bitcast<f32>(select(~found, found & 0x7fffffffu, (found >> 31u) == 1u));
}
