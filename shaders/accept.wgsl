// Ends a step of WIDTH nodes: walks from node 0 to the child whose token equals its parent's choice, as long as there is
// one. Each node on the path commits its position and emits its choice, into ring, context and the next node 0; the path
// is cut at a stop token, the token limit or a full context, whose flag makes the rest of the window cheap.
// One thread a node finds its choice, thread 0 walks. `order` swaps instead of moving keys and values: entry length + i
// takes the slot of the path's i-th node (a path's nodes rise, so no swap touches a node that is still to come).
#% include "include/control.wgsl"
const SEGMENTS = ${SEGMENTS}u;
const WIDTH = ${WIDTH}u;
const RECORDS = ${RECORDS}u;
const RING = ${RING}u;
const LONGEST = 9u;                      // a draft is at most 8 deep

struct Loop {
  control: Control,
  records: array<u32, ${RECORDS * 3}>,   // a step: tokens emitted, match length, width
  ring: array<u32, ${RING}>,             // tokens of the reply, at emitted % RING
}

#% include "include/request.wgsl"

@group(0) @binding(0) var<storage, read_write> state: Loop;
@group(0) @binding(1) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> request: Request;
@group(0) @binding(3) var<storage, read_write> context: array<u32>;
@group(0) @binding(4) var<storage, read_write> order: array<u32>;

var<workgroup> choice: array<u32, 32>;

fn choose(t: u32) -> u32 {
  var found = vec2<u32>(0u, 0u);
  for (var i = 0u; i < SEGMENTS; i++) {
    let other = best[t * SEGMENTS + i];
    if (other.x > found.x || (other.x == found.x && other.y < found.y)) { found = other; }
  }
  return found.y;
}

// Commits `node` as the path's number `depth` and emits its choice.
fn emit(node: u32, depth: u32) {
  let token = choice[node];
  let position = state.control.length + depth;
  let slot = order[position];
  order[position] = order[state.control.length + node];
  order[state.control.length + node] = slot;
  state.ring[state.control.emitted % RING] = token;
  context[state.control.context_length] = token;
  state.control.emitted += 1u;
  state.control.context_length += 1u;
  for (var i = 0u; i < request.stops; i++) {
    if (token == request.stop[i]) { state.control.flags |= FINISHED_STOP; }
  }
  if (state.control.emitted >= request.token_limit) { state.control.flags |= FINISHED_LIMIT; }
  if (state.control.context_length >= request.context_limit) { state.control.flags |= FINISHED_CONTEXT; }
}

// The child of `node` that carries its choice; 0 where there is none.
fn child(node: u32, nodes: u32) -> u32 {
  for (var i = node + 1u; i < nodes; i++) {
    if (state.control.nodes[i].y == node && state.control.nodes[i].x == choice[node]) { return i; }
  }
  return 0u;
}

fn walk(nodes: u32) {
  var node = 0u;
  var accepted = 0u;
  loop {
    emit(node, accepted);
    accepted += 1u;
    if (state.control.flags != 0u || accepted == LONGEST) { break; }
    let next = child(node, nodes);
    if (next == 0u) { break; }
    node = next;
  }
  let record = state.control.steps % RECORDS * 3u;
  state.records[record] = accepted;
  state.records[record + 1u] = state.control.match_length;
  state.records[record + 2u] = WIDTH;
  state.control.steps += 1u;
  state.control.length += accepted;
  state.control.width = WIDTH;
  state.control.nodes[0] = vec4<u32>(choice[node], 0u, 0u, 1u);
  state.control.valid = 1u;
  state.control.match_length = 0u;
}

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) thread: u32) {
  let nodes = min(state.control.valid, WIDTH);
  if (thread < nodes) { choice[thread] = choose(thread); }
  workgroupBarrier();
  if (thread == 0u && state.control.flags == 0u) { walk(nodes); }
}
