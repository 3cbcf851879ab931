// The drafter's view of the tokens: memory at 0 .. start - 1, prompt and reply from `start` on. A match and what follows
// it stay on their side of `start`. pyweb/speculation/fixed.py is the same in numpy and says the algorithm.
const BLOCK = 1024u;             // positions that one workgroup scans
const BLOCK_KEEPS = 16u;         // of which it keeps the best
const SELECTED = 48u;            // candidates of all blocks
const OWN_COMMON = 24u;          // frequent tokens of prompt and reply, two candidates each
const MEMORY_COMMON = 16u;       // and of the memory
const MAX_ORDER = 8u;
const MAX_DEPTH = 8u;
const NONE = 0xffffffffu;

// A frequent token: how often, where last, where before (NONE: nowhere).
struct Common {
  token: u32,
  count: u32,
  latest: u32,
  previous: u32,
}

struct Draft {
  start: u32,                    // tokens of memory
  counted: u32,                  // tokens of prompt and reply that `own` counts
  listed: u32,                   // entries of `own`
  memory_listed: u32,
  own: array<Common, 24>,        // in no order
  remembered: array<Common, 16>, // in falling order
}
