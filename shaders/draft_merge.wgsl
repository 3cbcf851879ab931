// Merges what follows the candidates to a weighted trie and writes its 31 heaviest nodes behind node 0, best first.
// One workgroup, one thread a candidate: 48 matches, then twice 24 frequent tokens of prompt and reply, then twice 16 of
// the memory. Level by level a thread knows its node's leader (its lowest candidate) and weight; a leader leads down to
// its end, so the nodes are (leader, depth) pairs. Weights are integers: any order of additions gives the same tree.
#% include "include/control.wgsl"
#% include "include/draft.wgsl"
const CANDIDATES = 128u;
const ONE = 1u << 20u;
// 256ths by match length 0 to 8: prompt and reply, memory.
const TRUST = array<array<u32, 9>, 2>(
  array<u32, 9>(${TRUST[0] | join(", ")}),
  array<u32, 9>(${TRUST[1] | join(", ")}),
);

@group(0) @binding(0) var<storage, read_write> control: Control;
@group(0) @binding(1) var<storage, read> context: array<u32>;
@group(0) @binding(2) var<storage, read> memory: array<u32>;
@group(0) @binding(3) var<storage, read> draft: Draft;
@group(0) @binding(4) var<storage, read> keys: array<u32>;

var<workgroup> selected: array<u32, 48>;
var<workgroup> leader: array<u32, 128>;      // of the candidate's node at this depth; NONE: it ended
var<workgroup> follower: array<u32, 128>;    // its next token; NONE: none
var<workgroup> kind: array<u32, 128>;        // match length * 2 + side
var<workgroup> vote: array<u32, 128>;
var<workgroup> next_leader: array<u32, 128>;
var<workgroup> weight: array<u32, 1024>;     // of the node that a candidate leads at depth + 1: [depth][candidate]
var<workgroup> index: array<u32, 1024>;      // its place in the tree
var<workgroup> led: array<u32, 1024>;        // leader of the candidate's node at depth + 1
var<workgroup> best: atomic<u32>;
var<workgroup> winner: u32;
var<workgroup> finished: u32;

struct Candidate {
  place: u32,
  end: u32,
  length: u32,
  side: u32,
  count: u32,
}

fn token(position: u32) -> u32 {
  if (position < draft.start) { return memory[position]; }
  return context[position - draft.start];
}

fn candidate_at(place: u32, length: u32, count: u32) -> Candidate {
  let remembered = place < draft.start;
  let end = select(draft.start + control.context_length, draft.start, remembered);
  return Candidate(place, select(end, 0u, place == NONE), length, select(0u, 1u, remembered), count);
}

// Entry `rank` of the list of prompt and reply, by falling (count, latest position).
fn own_common(rank: u32) -> Common {
  for (var i = 0u; i < draft.listed; i++) {
    let a = draft.own[i];
    var before = 0u;
    for (var j = 0u; j < draft.listed; j++) {
      let b = draft.own[j];
      before += select(0u, 1u, b.count > a.count || (b.count == a.count && b.latest > a.latest));
    }
    if (before == rank) { return a; }
  }
  return Common(0u, 0u, NONE, NONE);
}

fn common_candidate(entry: Common, second: bool) -> Candidate {
  if (second) { return candidate_at(entry.previous, 0u, 0u); }
  return candidate_at(entry.latest, 0u, entry.count);
}

fn candidate(c: u32) -> Candidate {
  if (c < SELECTED) {
    let key = selected[c];
    return candidate_at(select(key & 0x3ffffffu, NONE, key == 0u), key >> 26u, 0u);
  }
  let number = (c - SELECTED) / 2u;
  let second = (c - SELECTED) % 2u == 1u;
  if (number < OWN_COMMON) { return common_candidate(own_common(number), second); }
  let rank = number - OWN_COMMON;
  if (rank >= draft.memory_listed) { return candidate_at(NONE, 0u, 0u); }
  return common_candidate(draft.remembered[rank], second);
}

// Ranks all blocks' keys: they differ, so each rank is taken once.
fn select_keys(thread: u32, blocks: u32) {
  let count = blocks * BLOCK_KEEPS;
  for (var i = thread; i < count; i += CANDIDATES) {
    let key = keys[i];
    if (key == 0u) { continue; }
    var rank = 0u;
    for (var j = 0u; j < count && rank < SELECTED; j++) { rank += select(0u, 1u, keys[j] > key); }
    if (rank < SELECTED) { selected[rank] = key; }
  }
}

// The vote of a candidate in its node, and what the orders above 0 leave of the node's weight.
fn votes(mine: Candidate, c: u32, whole: u32, depth: u32) -> u32 {
  // Members with a token here, by side and order, eight bits each: counts[side] holds orders 1 to 8.
  var counts = array<vec2<u32>, 2>(vec2<u32>(0u), vec2<u32>(0u));
  for (var other = 0u; other < CANDIDATES; other++) {
    if (leader[other] != leader[c] || follower[other] == NONE) { continue; }
    let order = min(MAX_ORDER, kind[other] / 2u + depth);
    if (order == 0u) { continue; }
    let one = 1u << (((order - 1u) % 4u) * 8u);
    let side = kind[other] % 2u;
    if (order > 4u) { counts[side].y += one; } else { counts[side].x += one; }
  }
  let own_order = min(MAX_ORDER, mine.length + depth);
  var rest = whole;
  var seen = vec2<u32>(0u);
  var sum = 0u;
  for (var order = MAX_ORDER; order > 0u; order--) {
    for (var side = 0u; side < 2u; side++) {
      let here = (select(counts[side].x, counts[side].y, order > 4u) >> (((order - 1u) % 4u) * 8u)) & 0xffu;
      if (here == 0u) { continue; }
      seen[side] += here;
      let mass = (rest * TRUST[side][order]) >> 8u;
      if (side == mine.side && order <= own_order) { sum += mass / seen[side]; }
      rest -= mass;
    }
  }
  if (own_order > 0u) { return sum; }
  let own = (rest * TRUST[0][0]) >> 8u;
  let remembered = ((rest - own) * TRUST[1][0]) >> 8u;
  let mass = select(own, remembered, mine.side == 1u);
  let tokens = select(control.context_length, draft.start, mine.side == 1u);
  return ((mass >> 4u) * mine.count / tokens) << 4u;
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) c: u32) {
  if (c == 0u) { finished = control.flags; }
  if (workgroupUniformLoad(&finished) != 0u) { return; }
  if (c < SELECTED) { selected[c] = 0u; }
  workgroupBarrier();
  let length = draft.start + control.context_length;
  select_keys(c, (length + BLOCK - 1u) / BLOCK);
  workgroupBarrier();
  let mine = candidate(c);
  kind[c] = mine.length * 2u + mine.side;
  leader[c] = 0u;
  var node_weight = ONE;
  for (var depth = 0u; depth < MAX_DEPTH; depth++) {
    follower[c] = NONE;
    if (leader[c] != NONE && mine.place != NONE && mine.place + depth < mine.end) {
      follower[c] = token(mine.place + depth); // NONE between suggestions
    }
    let alive = follower[c] != NONE;
    workgroupBarrier();
    vote[c] = 0u;
    if (alive) { vote[c] = votes(mine, c, node_weight, depth); }
    workgroupBarrier();
    var first = NONE;
    var sum = 0u;
    if (alive) {
      for (var other = 0u; other < CANDIDATES; other++) {
        if (leader[other] == leader[c] && follower[other] == follower[c]) {
          first = min(first, other);
          sum += vote[other];
        }
      }
    }
    next_leader[c] = select(first, NONE, sum == 0u);
    node_weight = sum;
    workgroupBarrier();
    leader[c] = next_leader[c];
    led[depth * CANDIDATES + c] = next_leader[c];
    weight[depth * CANDIDATES + c] = select(0u, sum, next_leader[c] == c);
    workgroupBarrier();
  }
  emit(c, mine);
}

// Takes the heaviest node again and again: weight falling, then depth rising, then leader rising.
fn emit(c: u32, mine: Candidate) {
  var next = 0u;
  while (next < MAX_DEPTH && weight[next * CANDIDATES + c] == 0u) { next++; }
  var nodes = 1u;
  for (; nodes < 32u; nodes++) {
    if (c == 0u) { atomicStore(&best, 0u); }
    workgroupBarrier();
    var key = 0u;
    if (next < MAX_DEPTH) {
      key = (weight[next * CANDIDATES + c] << 11u) | ((MAX_DEPTH - 1u - next) << 7u) | (CANDIDATES - 1u - c);
      if (weight[next * CANDIDATES + c] == 0u) { key = 0u; }
    }
    if (key > 0u) { atomicMax(&best, key); }
    workgroupBarrier();
    if (c == 0u) { winner = atomicLoad(&best); }
    let found = workgroupUniformLoad(&winner);
    if (found == 0u) { break; }
    if (key == found) {
      index[next * CANDIDATES + c] = nodes;
      write(nodes, c, next, token(mine.place + next));
      next += 1u;
    }
    storageBarrier();
    workgroupBarrier();
  }
  if (c == 0u) {
    control.valid = nodes;
    control.match_length = selected[0] >> 26u;
  }
}

fn write(node: u32, c: u32, depth: u32, token: u32) {
  var parent = 0u;
  if (depth > 0u) { parent = index[(depth - 1u) * CANDIDATES + led[(depth - 1u) * CANDIDATES + c]]; }
  let mask = control.nodes[parent].w | (1u << node);
  control.nodes[node] = vec4<u32>(token, parent, depth + 1u, mask);
}
