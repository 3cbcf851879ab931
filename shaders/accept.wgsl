// Ends a step: the choice for node 0, one more committed position, the token into ring, context and the next node 0.
// A stop token, the token limit or a full context sets the flag that makes the rest of the window cheap.
#% include "include/control.wgsl"
const SEGMENTS = ${SEGMENTS}u;
const THREADS = ${THREADS}u;
const RECORDS = ${RECORDS}u;
const RING = ${RING}u;

struct Loop {
  control: Control,
  records: array<u32, ${RECORDS * 3}>,  // a step: nodes accepted, match length, width
  ring: array<u32, ${RING}>,            // tokens of the reply, at emitted % RING
}

struct Request {
  token_limit: u32,
  context_limit: u32,
  prompt_length: u32,
  stops: u32,
  stop: array<u32, 12>,
}

@group(0) @binding(0) var<storage, read_write> loop_state: Loop;
@group(0) @binding(1) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> request: Request;
@group(0) @binding(3) var<storage, read_write> context: array<u32>;

fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let second = b.x > a.x || (b.x == a.x && b.y < a.y);
  return select(a, b, second);
}

fn emit(token: u32) {
  let state = &loop_state.control;
  if ((*state).flags != 0u) { return; }
  let record = (*state).steps % RECORDS * 3u;
  loop_state.records[record] = 1u;
  loop_state.records[record + 1u] = 0u;
  loop_state.records[record + 2u] = (*state).valid;
  (*state).steps += 1u;
  (*state).width = (*state).valid;
  loop_state.ring[(*state).emitted % RING] = token;
  (*state).emitted += 1u;
  (*state).length += 1u;
  context[(*state).context_length] = token;
  (*state).context_length += 1u;
  (*state).nodes[0] = vec4<u32>(token, 0u, 0u, 1u);
  (*state).valid = 1u;
  for (var i = 0u; i < request.stops; i++) {
    if (token == request.stop[i]) { (*state).flags |= FINISHED_STOP; }
  }
  if ((*state).emitted >= request.token_limit) { (*state).flags |= FINISHED_LIMIT; }
  if ((*state).context_length >= request.context_limit) { (*state).flags |= FINISHED_CONTEXT; }
}

#% if THREADS > 1
var<workgroup> found: array<vec2<u32>, ${THREADS}>;
#% endif

@compute @workgroup_size(${THREADS})
fn main(@builtin(local_invocation_index) thread: u32) {
  var mine = vec2<u32>(0u, 0u);
  for (var i = thread; i < SEGMENTS; i += THREADS) { mine = better(mine, best[i]); }
#% if THREADS > 1
  found[thread] = mine;
  workgroupBarrier();
  for (var stride = THREADS / 2u; stride > 0u; stride /= 2u) {
    if (thread < stride) { found[thread] = better(found[thread], found[thread + stride]); }
    workgroupBarrier();
  }
  mine = found[0];
#% endif
  if (thread == 0u) { emit(mine.y); }
}
