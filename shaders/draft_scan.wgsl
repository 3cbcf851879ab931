// Match lengths: position p has the number of tokens before it, at most 8, that equal the last ones of prompt and reply.
// keys[block][rank] = length << 26 | p of a block's BLOCK_KEEPS longest and latest matches, 0 where there are fewer.
// One workgroup a block of 1,024 positions; each round takes the greatest key by an atomic maximum.
#% include "include/control.wgsl"
#% include "include/draft.wgsl"
const THREADS = 64u;
const EACH = BLOCK / THREADS;

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> context: array<u32>;
@group(0) @binding(2) var<storage, read> memory: array<u32>;
@group(0) @binding(3) var<storage, read> draft: Draft;
@group(0) @binding(4) var<storage, read_write> keys: array<u32>;

var<workgroup> best: atomic<u32>;
var<workgroup> greatest: u32;

fn token(position: u32) -> u32 {
  if (position < draft.start) { return memory[position]; }
  return context[position - draft.start];
}

fn match_length(p: u32) -> u32 {
  let length = draft.start + control.context_length;
  if (p == 0u || p >= length || p == draft.start) { return 0u; }
  let room = min(select(p, p - draft.start, p > draft.start), min(MAX_ORDER, control.context_length));
  var n = 0u;
  while (n < room && token(p - 1u - n) == token(length - 1u - n)) { n++; }
  return n;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  if (control.flags != 0u) { return; }
  var mine: array<u32, EACH>;
  for (var i = 0u; i < EACH; i++) {
    let p = group.x * BLOCK + i * THREADS + thread;
    let n = match_length(p);
    mine[i] = select(0u, (n << 26u) | p, n > 0u);
  }
  for (var rank = 0u; rank < BLOCK_KEEPS; rank++) {
    if (thread == 0u) { atomicStore(&best, 0u); }
    workgroupBarrier();
    var most = 0u;
    for (var i = 0u; i < EACH; i++) { most = max(most, mine[i]); }
    if (most > 0u) { atomicMax(&best, most); }
    workgroupBarrier();
    if (thread == 0u) {
      greatest = atomicLoad(&best);
      keys[group.x * BLOCK_KEEPS + rank] = greatest;
    }
    let found = workgroupUniformLoad(&greatest);
    if (found == 0u) {
      for (var rest = rank + 1u + thread; rest < BLOCK_KEEPS; rest += THREADS) {
        keys[group.x * BLOCK_KEEPS + rest] = 0u;
      }
      break;
    }
    for (var i = 0u; i < EACH; i++) { mine[i] = select(mine[i], 0u, mine[i] == found); }
  }
}
