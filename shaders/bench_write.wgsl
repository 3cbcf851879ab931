// The least that a dispatch of a step does: one thread changes one word, which the next dispatch reads.
@group(0) @binding(0) var<storage, read_write> word: array<u32>;

@compute @workgroup_size(1)
fn main() {
  word[0] += 1u;
}
