// Where a node's key at a logical position lies: committed positions at their own slot, ancestors at length + node.
const HEADS = ${HEADS}u;
const KV_HEADS = ${KV_HEADS}u;
const GROUP = ${HEADS // KV_HEADS}u;      // query heads of one KV head
const HALF = ${HEAD_SIZE // 2}u;          // pairs of a head
const SLOTS = ${SLOTS}u;
const CHUNK = ${CHUNK}u;                  // positions of a chunk, aligned to position 0
const CHUNKS = ${(SLOTS + CHUNK - 1) // CHUNK}u;
const PARTIAL = HALF + 1u;                // pairs of a partial result: the weighted values, then (maximum, sum)

fn ancestor(mask: u32, depth: u32) -> u32 {
  var rest = mask;
  for (var i = 0u; i < depth; i++) { rest &= rest - 1u; }
  return firstTrailingBit(rest);
}
