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
var<workgroup> own_order: array<u32, 24>;    // entries of the list of prompt and reply, best first
var<workgroup> members: array<vec2<u32>, 128>; // leader of the candidate's node at this depth, with side at bit 8 and
                                               // match length above; its next token, NONE where there is none
var<workgroup> vote: array<u32, 128>;
var<workgroup> led: array<u32, 1024>;        // leader of the candidate's node at depth + 1: [depth][candidate]
var<workgroup> index: array<u32, 1024>;      // place in the tree of the node that a candidate leads
var<workgroup> heaviest: array<u32, 1024>;   // keys of all nodes, in no order
var<workgroup> found: atomic<u32>;           // how many
var<workgroup> alive_at: array<atomic<u32>, 8>;
var<workgroup> finished: u32;
const ENDED = 0xffu;                         // leader of a candidate that ended

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

// Sorts the list of prompt and reply by falling (count, latest position).
fn sort_own(i: u32) {
  if (i >= draft.listed) { return; }
  let mine = draft.own[i];
  var before = 0u;
  for (var j = 0u; j < draft.listed; j++) {
    let b = draft.own[j];
    before += select(0u, 1u, b.count > mine.count || (b.count == mine.count && b.latest > mine.latest));
  }
  own_order[before] = i;
}

fn own_common(rank: u32) -> Common {
  if (rank >= draft.listed) { return Common(0u, 0u, NONE, NONE); }
  return draft.own[own_order[rank]];
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
fn votes(mine: Candidate, leader: u32, whole: u32, depth: u32) -> u32 {
  // Members with a token here, by order, eight bits each: x holds orders 1 to 4, y 5 to 8.
  var own = vec2<u32>(0u);
  var remembered = vec2<u32>(0u);
  for (var other = 0u; other < CANDIDATES; other++) {
    let member = members[other];
    let order = min(MAX_ORDER, (member.x >> 9u) + depth);
    let counts = (member.x & 0xffu) == leader && member.y != NONE && order > 0u;
    let one = select(0u, 1u << (((order - 1u) % 4u) * 8u), counts);
    let ones = select(vec2<u32>(one, 0u), vec2<u32>(0u, one), order > 4u);
    let from_memory = (member.x & 0x100u) != 0u;
    own += select(ones, vec2<u32>(0u), from_memory);
    remembered += select(vec2<u32>(0u), ones, from_memory);
  }
  let own_order = min(MAX_ORDER, mine.length + depth);
  var rest = whole;
  var seen = vec2<u32>(0u);
  var sum = 0u;
  for (var order = MAX_ORDER; order > 0u; order--) {
    let shift = ((order - 1u) % 4u) * 8u;
    let here = (vec2<u32>(select(own.x, own.y, order > 4u), select(remembered.x, remembered.y, order > 4u)) >> vec2<u32>(shift))
      & vec2<u32>(0xffu);
    seen += here;
    if (here.x > 0u) {
      let mass = (rest * TRUST[0][order]) >> 8u;
      if (mine.side == 0u && order <= own_order) { sum += mass / seen.x; }
      rest -= mass;
    }
    if (here.y > 0u) {
      let mass = (rest * TRUST[1][order]) >> 8u;
      if (mine.side == 1u && order <= own_order) { sum += mass / seen.y; }
      rest -= mass;
    }
  }
  if (own_order > 0u) { return sum; }
  let own_mass = (rest * TRUST[0][0]) >> 8u;
  let remembered_mass = ((rest - own_mass) * TRUST[1][0]) >> 8u;
  let mass = select(own_mass, remembered_mass, mine.side == 1u);
  let tokens = select(control.context_length, draft.start, mine.side == 1u);
  return ((mass >> 4u) * mine.count / tokens) << 4u;
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) c: u32) {
  if (c == 0u) { finished = control.flags; }
  if (workgroupUniformLoad(&finished) != 0u) { return; }
  if (c < SELECTED) { selected[c] = 0u; }
  for (var depth = 0u; depth < MAX_DEPTH; depth++) { led[depth * CANDIDATES + c] = ENDED; }
  sort_own(c);
  workgroupBarrier();
  let length = draft.start + control.context_length;
  select_keys(c, (length + BLOCK - 1u) / BLOCK);
  workgroupBarrier();
  let mine = candidate(c);
  let kind = (mine.length << 9u) | (mine.side << 8u);
  var leader = 0u;
  var node_weight = ONE;
  for (var depth = 0u; depth < MAX_DEPTH; depth++) {
    var follower = NONE;
    if (leader != ENDED && mine.place != NONE && mine.place + depth < mine.end) {
      follower = token(mine.place + depth); // NONE between suggestions
    }
    let alive = follower != NONE;
    members[c] = vec2<u32>(kind | leader, follower);
    if (alive) { atomicAdd(&alive_at[depth], 1u); }
    workgroupBarrier();
    if (uniform_count(depth) == 0u) { break; }
    vote[c] = 0u;
    if (alive) { vote[c] = votes(mine, leader, node_weight, depth); }
    workgroupBarrier();
    var first = ENDED;
    var sum = 0u;
    if (alive) {
      for (var other = 0u; other < CANDIDATES; other++) {
        let member = members[other];
        if ((member.x & 0xffu) == leader && member.y == follower) {
          first = min(first, other);
          sum += vote[other];
        }
      }
    }
    leader = select(first, ENDED, sum == 0u);
    node_weight = sum;
    led[depth * CANDIDATES + c] = leader;
    if (leader == c) {
      // Heavier first, then the shallower, then the lower leader.
      heaviest[atomicAdd(&found, 1u)] = (sum << 11u) | ((MAX_DEPTH - 1u - depth) << 7u) | (CANDIDATES - 1u - c);
    }
    workgroupBarrier();
  }
  emit(c, mine);
}

var<workgroup> count: u32;

fn uniform_count(depth: u32) -> u32 {
  count = atomicLoad(&alive_at[depth]);
  return workgroupUniformLoad(&count);
}

// Writes the heaviest nodes. A node never weighs more than its parent, so the first ones are closed under parents.
fn emit(c: u32, mine: Candidate) {
  count = atomicLoad(&found);
  let nodes = workgroupUniformLoad(&count);
  for (var i = c; i < nodes; i += CANDIDATES) {
    let key = heaviest[i];
    var rank = 0u;
    for (var j = 0u; j < nodes; j++) { rank += select(0u, 1u, heaviest[j] > key); }
    let depth = MAX_DEPTH - 1u - ((key >> 7u) & 7u);
    index[depth * CANDIDATES + CANDIDATES - 1u - (key & 127u)] = rank + 1u;
  }
  workgroupBarrier();
  for (var depth = 0u; depth < MAX_DEPTH; depth++) {
    let at = depth * CANDIDATES + c;
    if (led[at] == c && index[at] < 32u) { write(index[at], c, depth, token(mine.place + depth)); }
  }
  if (c == 0u) {
    control.valid = min(nodes, 31u) + 1u;
    control.match_length = selected[0] >> 26u;
  }
}

// The node that candidate `c` leads: its ancestors are those of the candidate.
fn write(node: u32, c: u32, depth: u32, token: u32) {
  var parent = 0u;
  var mask = 1u | (1u << node);
  for (var above = 0u; above < depth; above++) {
    parent = index[above * CANDIDATES + led[above * CANDIDATES + c]];
    mask |= 1u << parent;
  }
  control.nodes[node] = vec4<u32>(token, parent, depth + 1u, mask);
}
