// Rows of a quantized matrix times activation vectors: `accumulate` leaves each lane's part in sum_<row>_<token>.
// A lane adds the blocks lane, lane + LANES, ... in rising order, whatever the number of tokens; fma() leaves the
// compiler nothing to contract. 4-bit block: word k holds elements 4k..4k+3 (low nibbles) and 16+4k.. (high nibbles).
// 8-bit block: eight words of codes in element order.
#% from "include/scales.wgsl" import scales_at with context
#% macro bindings()
const BLOCKS = ${K // 32}u;
const LANES = ${LANES}u;
const THREADS = ${THREADS}u;
const TOKENS = ${TOKENS}u;
#% if LANES > 1
var<workgroup> lanes: array<f32, ${ROWS * TOKENS * THREADS}>;
#% endif
@group(0) @binding(0) var<uniform> control: Control;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
#% endmacro

#% macro accumulate()
#% for r in range(ROWS)
#% for t in range(TOKENS)
  var sum_${r}_${t} = 0.0;
#% endfor
#% endfor
  for (var b = lane; b < BLOCKS; b += LANES) {
#% for r in range(ROWS)
    let at_${r} = row_${r} * BLOCKS + b;
#% if BITS == 4
    let w_${r} = codes[at_${r}];
    let low_${r} = w_${r} & vec4<u32>(0x0f0f0f0fu);
    let high_${r} = (w_${r} >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
#% else
    let low_${r} = codes[at_${r} * 2u];
    let high_${r} = codes[at_${r} * 2u + 1u];
#% endif
${scales_at("at_%d" % r, "_%d" % r)}
#% endfor
#% for t in range(TOKENS)
    {
      let at = ((first_token + ${t}u) * BLOCKS + b) * 3u;
      let x0 = x[at];
      let x1 = x[at + 1u];
      let s = bitcast<vec2<f32>>(x[at + 2u].xy);
#% for r in range(ROWS)
      let dot_${r} = dot4I8Packed(low_${r}.x, x0.x) + dot4I8Packed(low_${r}.y, x0.y)
        + dot4I8Packed(low_${r}.z, x0.z) + dot4I8Packed(low_${r}.w, x0.w);
      let second_dot_${r} = dot4I8Packed(high_${r}.x, x1.x) + dot4I8Packed(high_${r}.y, x1.y)
        + dot4I8Packed(high_${r}.z, x1.z) + dot4I8Packed(high_${r}.w, x1.w);
#% if SCALES == 1
      sum_${r}_${t} = fma(f32(dot_${r} + second_dot_${r}), scale_${r} * s.x, sum_${r}_${t});
#% else
      sum_${r}_${t} = fma(f32(dot_${r}), scale_${r} * s.x, sum_${r}_${t});
      sum_${r}_${t} = fma(f32(second_dot_${r}), second_scale_${r} * s.x, sum_${r}_${t});
#% endif
#% if OFFSET
      sum_${r}_${t} = fma(offset_${r}, s.y, sum_${r}_${t});
#% endif
#% endfor
    }
#% endfor
  }
#% endmacro

// Adds the lanes of a row in a fixed tree through workgroup memory; the sums lie in `lanes` at lane 0 afterwards.
#% macro reduce()
#% for r in range(ROWS)
#% for t in range(TOKENS)
  lanes[${(r * TOKENS + t) * THREADS}u + thread] = sum_${r}_${t};
#% endfor
#% endfor
  workgroupBarrier();
  for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
    if (lane < stride) {
#% for v in range(ROWS * TOKENS)
      lanes[${v * THREADS}u + thread] += lanes[${v * THREADS}u + thread + stride];
#% endfor
    }
    workgroupBarrier();
  }
#% endmacro

// The finished sum of a row for token t, in the thread that calls: `#% if LANES > 1` behind reduce().
#% macro reduced(row)
lanes[(${row}u * TOKENS + t) * THREADS + thread - lane]
#%- endmacro
