// The scales of block `at`: scale<name>, with SCALES 2 second_scale<name> of elements 16..31, with OFFSET offset<name>.
// They lie side by side as f16: one takes half a word, two a word, three two words with a zero.
#% macro scales_at(at, name)
#% if SCALES == 1 and not OFFSET
    let pair${name} = unpack2x16float(scales[${at} >> 1u]);
    let scale${name} = select(pair${name}.x, pair${name}.y, (${at} & 1u) == 1u);
#% else
    let pair${name} = unpack2x16float(scales[${at}${" * 2u" if SCALES == 2 and OFFSET else ""}]);
    let scale${name} = pair${name}.x;
#% if SCALES == 2
    let second_scale${name} = pair${name}.y;
#% endif
#% if OFFSET
    let offset${name} = ${"unpack2x16float(scales[%s * 2u + 1u]).x" % at if SCALES == 2 else "pair%s.y" % name};
#% endif
#% endif
#% endmacro
