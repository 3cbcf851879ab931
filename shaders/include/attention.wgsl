// Where keys and values lie: position p of the committed cache in slot order[p], node n of a step in order[length + n].
// `order` is a permutation of all slots; accepting a path swaps entries, so that nothing in the cache has to move.
const HEADS = ${HEADS}u;
const KV_HEADS = ${KV_HEADS}u;
const GROUP = ${HEADS // KV_HEADS}u;      // query heads of one KV head
const HALF = ${HEAD_SIZE // 2}u;          // pairs of a head
const SLOTS = ${SLOTS}u;
const CHUNK = ${CHUNK}u;                  // positions of a chunk, aligned to position 0
const CHUNKS = ${(SLOTS + CHUNK - 1) // CHUNK}u;
const FOURS = HALF / 2u;                  // fours of a head
const PARTIAL = FOURS + 1u;               // fours of a partial result: the weighted values, then (maximum, sum, 0, 0)

// The node that is `depth` steps below node 0 among a node's ancestors and itself.
fn ancestor(mask: u32, depth: u32) -> u32 {
  var rest = mask;
  for (var i = 0u; i < depth; i++) { rest &= rest - 1u; }
  return firstTrailingBit(rest);
}
