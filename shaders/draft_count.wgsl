// Keeps the list of frequent tokens of prompt and reply: places[token] = (count, latest, previous position, listed + 1).
// Counts and positions only grow, so a token can enter the list only when it occurs. One thread, the new tokens in order.
#% include "include/control.wgsl"
#% include "include/draft.wgsl"

@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> context: array<u32>;
@group(0) @binding(2) var<storage, read_write> draft: Draft;
@group(0) @binding(3) var<storage, read_write> places: array<vec4<u32>>;

// The list's entry with the smallest (count, latest position).
fn least() -> u32 {
  var found = 0u;
  for (var i = 1u; i < OWN_COMMON; i++) {
    let a = draft.own[i];
    let b = draft.own[found];
    if (a.count < b.count || (a.count == b.count && a.latest < b.latest)) { found = i; }
  }
  return found;
}

fn add(token: u32, position: u32) {
  let old = places[token];
  let count = old.x + 1u;
  let previous = select(old.y, NONE, old.x == 0u);
  var slot = old.w;
  if (slot == 0u) {
    if (draft.listed < OWN_COMMON) {
      draft.listed += 1u;
      slot = draft.listed;
    } else {
      let last = least();
      let worst = draft.own[last];
      // A new occurrence is later than any other, so an equal count is enough to enter.
      if (count >= worst.count) {
        places[worst.token].w = 0u;
        slot = last + 1u;
      }
    }
  }
  places[token] = vec4<u32>(count, position, previous, slot);
  if (slot > 0u) { draft.own[slot - 1u] = Common(token, count, position, previous); }
}

@compute @workgroup_size(1)
fn main() {
  let end = control.context_length;
  for (var i = draft.counted; i < end; i++) { add(context[i], draft.start + i); }
  draft.counted = end;
}
