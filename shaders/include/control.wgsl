// Control buffer: 32 draft-tree nodes, then 32 bytes of state. pyweb/plan/control.py lays it out for the host.
const FINISHED_STOP = 1u;      // a stop token was chosen
const FINISHED_LIMIT = 2u;     // the token limit is reached
const FINISHED_CONTEXT = 4u;   // the context is full

struct Control {
  nodes: array<vec4<u32>, 32>, // token, parent, depth, mask of the node and its ancestors
  length: u32,                 // committed positions of the KV cache
  valid: u32,                  // nodes of this step
  context_length: u32,         // tokens of prompt and reply
  flags: u32,
  emitted: u32,                // tokens of the reply
  steps: u32,                  // steps that emitted
  width: u32,                  // nodes of the last step
  match_length: u32,           // of the best candidate behind the nodes
}
