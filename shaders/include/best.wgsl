// best[t][segment] of `scan(t, first, stride)`, the best (value, id) of every stride-th token; ties go to the lowest id. A
// segment is one thread's part or, where THREADS isn't 1, that of a workgroup. The order of comparison changes nothing.
fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
}

#% if THREADS > 1
var<workgroup> found: array<vec2<u32>, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  if (control.flags != 0u || t >= control.valid) { return; }
  found[thread] = scan(t, group.x * THREADS + thread, SEGMENTS * THREADS);
  workgroupBarrier();
  for (var stride = THREADS / 2u; stride > 0u; stride /= 2u) {
    if (thread < stride) { found[thread] = better(found[thread], found[thread + stride]); }
    workgroupBarrier();
  }
  if (thread == 0u) { best[t * SEGMENTS + group.x] = found[0]; }
}
#% else
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let t = id.y;
  if (control.flags != 0u || t >= control.valid || id.x >= SEGMENTS) { return; }
  best[t * SEGMENTS + id.x] = scan(t, id.x, SEGMENTS);
}
#% endif
