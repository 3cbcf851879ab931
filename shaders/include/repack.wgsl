// A range of blocks: the source holds `blocks` of them, the first goes to block `first` of the target.
struct Range {
  first: u32,
  blocks: u32,
}
@group(0) @binding(0) var<uniform> range: Range;
