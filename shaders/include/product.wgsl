// Rows of a quantized matrix times activation vectors. A row belongs to LANES lanes; lane l adds the blocks l, l + LANES,
// ... in rising order, whatever the number of tokens, then a fixed tree adds the lanes: at every stride from LANES / 2
// down to 1 lane l and lane l ^ stride, which is what a tree through workgroup memory does too. fma() leaves the compiler
// nothing to contract. 4-bit block: word k holds elements 4k..4k+3 (low nibbles) and 16+4k.. (high nibbles). 8-bit block:
// eight words of codes in element order. With NORM the activation is not divided by its root mean square yet: each block
// brings the sum of its squares, which are added the same way.
#% from "include/scales.wgsl" import scales_at with context
#% set STEPS = (K // 32 + LANES - 1) // LANES
#% set UNROLLED = [UNROLL, STEPS] | min
#% set EVEN = K // 32 == LANES * ((STEPS + UNROLLED - 1) // UNROLLED) * UNROLLED
#% set levels = (LANES - 1).bit_length()
#% set VALUES = ROWS * TOKENS
#% set PIECE = [[VALUES, LANES, 2048 // THREADS] | min, TOKENS] | max
#% set OWNED = ([VALUES // LANES, 1] | max) if SUBGROUPS else VALUES // PIECE

// The sum of lanes first, first + step, ... in the order of the tree.
#% macro tree(first, step)
${"lanes[at + %du]" % first if step == LANES else "(%s + %s)" % (tree(first, 2 * step), tree(first + step, 2 * step))}
#%- endmacro

// At each stride a lane keeps half of its values and gets the other lane's part of them; a single value is kept by both.
#% macro halving(name, count)
#% for level in range(levels)
#% set stride = LANES // 2 // 2**level
#% set values = [count // 2**level, 1] | max
#% if values > 1
#% set half = values // 2
#% for i in range(half)
  let ${name}_${level + 1}_${i} = halved(${name}_${level}_${i}, ${name}_${level}_${i + half}, lane, ${stride}u);
#% endfor
#% else
  let ${name}_${level + 1}_0 = ${name}_${level}_0 + subgroupShuffleXor(${name}_${level}_0, ${stride}u);
#% endif
#% endfor
#% endmacro

#% macro bindings()
const BLOCKS = ${K // 32}u;
const LANES = ${LANES}u;
const THREADS = ${THREADS}u;
const TOKENS = ${TOKENS}u;
const GROUPS = THREADS / LANES;          // of lanes in a workgroup
#% if LANES > 1 and SUBGROUPS
// Of two values a lane keeps one, and adds the part that the lane at the other end of the stride has of it.
fn halved(low: f32, high: f32, lane: u32, stride: u32) -> f32 {
  let upper = (lane & stride) != 0u;
  return select(low, high, upper) + subgroupShuffleXor(select(high, low, upper), stride);
}
#% elif LANES > 1
var<workgroup> lanes: array<f32, ${PIECE * THREADS // LANES * (LANES + 1)}>; // one to spare a value: banks

// The tree over the lanes of one value of a group.
fn tree(value: u32) -> f32 {
  let at = value * (LANES + 1u);
  return ${tree(0, 1)};
}
#% endif
@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>; // as include/quantize.wgsl lays it out
@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;

// Functions, not macros: browsers read the text of every kernel at every visit.
fn dots(four: vec4<u32>, x: vec4<u32>) -> i32 {
  return dot4I8Packed(four.x, x.x) + dot4I8Packed(four.y, x.y) + dot4I8Packed(four.z, x.z) + dot4I8Packed(four.w, x.w);
}

// A sum and what a block adds to it: nothing where it lies beyond the row.
fn added(
  sum: f32,
  low: vec4<u32>,
  high: vec4<u32>,
  scale: f32,
#% if SCALES == 2
  second_scale: f32,
#% endif
#% if OFFSET
  offset: f32,
#% endif
  x0: vec4<u32>,
  x1: vec4<u32>,
  s: vec4<f32>,
#% if not EVEN
  inside: bool,
#% endif
) -> f32 {
#% set inside = "%s" if EVEN else "select(out, %s, inside)"
  var out = sum;
#% if SCALES == 1
  out = ${inside % "fma(f32(dots(low, x0) + dots(high, x1)), scale * s.x, out)"};
#% else
  out = ${inside % "fma(f32(dots(low, x0)), scale * s.x, out)"};
  out = ${inside % "fma(f32(dots(high, x1)), second_scale * s.x, out)"};
#% endif
#% if OFFSET
  out = ${inside % "fma(offset, s.y, out)"};
#% endif
  return out;
}
#% endmacro

// The head of `main` where LANES > 1: `lane`, and `group`, the number of its LANES in the workgroup.
#% macro entry()
@compute @workgroup_size(${THREADS})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
#% if SUBGROUPS
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) invocation: u32,
  @builtin(subgroup_size) subgroup_size: u32,
#% endif
) {
  let first_token = workgroup.y * TOKENS;
  if (control.flags != 0u || first_token >= control.valid) { return; }
#% if SUBGROUPS
  let lane = invocation % LANES;
  let group = subgroup * (subgroup_size / LANES) + invocation / LANES;
#% else
  let lane = thread % LANES;
  let group = thread / LANES;
#% endif
#% endmacro

// Each lane's part of the rows row_0, row_1, ...: sum_<token>_<row> and, with NORM, squares_<token>.
#% macro accumulate()
#% for t in range(TOKENS)
#% if NORM
  var squares_${t} = 0.0;
#% endif
#% for r in range(ROWS)
  var sum_${t}_${r} = 0.0;
#% endfor
#% endfor
  for (var step = 0u; step < ${STEPS}u; step += ${UNROLLED}u) {
#% for u in range(UNROLLED)
#% if EVEN
    let b_${u} = (step + ${u}u) * LANES + lane;
#% else
    let inside_${u} = (step + ${u}u) * LANES + lane < BLOCKS;
    let b_${u} = min((step + ${u}u) * LANES + lane, BLOCKS - 1u);
#% endif
#% for r in range(ROWS)
    let at_${u}_${r} = row_${r} * BLOCKS + b_${u};
#% if BITS == 4
    let codes_${u}_${r} = codes[at_${u}_${r}];
#% else
    let low_${u}_${r} = codes[at_${u}_${r} * 2u];
    let high_${u}_${r} = codes[at_${u}_${r} * 2u + 1u];
#% endif
${scales_at("at_%d_%d" % (u, r), "_%d_%d" % (u, r))}
#% endfor
#% endfor
#% for u in range(UNROLLED)
#% for r in range(ROWS)
#% if BITS == 4
    let low_${u}_${r} = codes_${u}_${r} & vec4<u32>(0x0f0f0f0fu);
    let high_${u}_${r} = (codes_${u}_${r} >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
#% endif
#% endfor
#% for t in range(TOKENS)
    {
      let at = (first_token + ${t}u) * BLOCKS * 3u + b_${u};
      let x0 = x[at];
      let x1 = x[at + BLOCKS];
      let s = bitcast<vec4<f32>>(x[at + BLOCKS * 2u]);
#% if NORM
      squares_${t} = ${"squares_%d + s.z" % t if EVEN else "select(squares_%d, squares_%d + s.z, inside_%d)" % (t, t, u)};
#% endif
#% for r in range(ROWS)
#% set scales = "scale_%d_%d" % (u, r) ~ (", second_scale_%d_%d" % (u, r) if SCALES == 2 else "")
#% set scales = scales ~ (", offset_%d_%d" % (u, r) if OFFSET else "")
      sum_${t}_${r} = added(sum_${t}_${r}, low_${u}_${r}, high_${u}_${r}, ${scales}, x0, x1, s${"" if EVEN else ", inside_%d" % u});
#% endfor
    }
#% endfor
#% endfor
  }
#% endmacro

// Adds the lanes. Afterwards a lane owns OWNED of the rows of one token, done_0 for row `owned_row` of its group's, done_1
// for the next, ...; `owner` says that no other lane owns them too. With NORM `inverse` is 1 / root mean square.
#% macro reduce()
#% if SUBGROUPS
#% for t in range(TOKENS)
#% for r in range(ROWS)
  let level_0_${t * ROWS + r} = sum_${t}_${r};
#% endfor
#% if NORM
  let squares_level_0_${t} = squares_${t};
#% endif
#% endfor
${halving("level", VALUES)}
#% if NORM
${halving("squares_level", TOKENS)}
  let square = squares_level_${levels}_0;
#% endif
#% for j in range(OWNED)
  let done_${j} = level_${levels}_${j};
#% endfor
  let owned = lane * ${VALUES}u / LANES;
  let owned_token = owned / ${ROWS}u;
  let owned_row = owned % ${ROWS}u;
  let owner = lane * ${VALUES}u % LANES < ${VALUES}u;
#% else
  // PIECE values at a time, some 8 KiB, lie in workgroup memory, and a lane adds up one of them.
#% for j in range(OWNED)
#% for i in range(PIECE)
#% set value = i * OWNED + j
  lanes[(group * ${PIECE}u + ${i}u) * (LANES + 1u) + lane] = sum_${value // ROWS}_${value % ROWS};
#% endfor
  workgroupBarrier();
  let done_${j} = tree(group * ${PIECE}u + min(lane, ${PIECE - 1}u));
  workgroupBarrier();
#% endfor
  let owned_token = lane * ${OWNED}u / ${ROWS}u;
  let owned_row = lane * ${OWNED}u % ${ROWS}u;
  let owner = lane < ${PIECE}u;
#% if NORM
#% for t in range(TOKENS)
  lanes[(group * ${PIECE}u + ${t}u) * (LANES + 1u) + lane] = squares_${t};
#% endfor
  workgroupBarrier();
  let square = tree(group * ${PIECE}u + min(owned_token, TOKENS - 1u));
  workgroupBarrier();
#% endif
#% endif
#% if NORM
  let inverse = 1.0 / sqrt(fma(square, ${1 / K}, ${EPS}));
#% endif
#% endmacro

// The finished sum of the owned row j: with NORM over the activation that was meant.
#% macro finished(j)
${"done_%d * inverse" % j if NORM else "done_%d" % j}
#%- endmacro
