/**
 * Model files with random weights, made where they are read: pyweb/weights/synthetic.py gives the header and says what
 * lies where (`random_file`), and writes the same bytes to a disk. Nothing of them is kept on this device.
 */
import { PART, partLength } from './parts.js';
import { Signal } from './signal.js';
import { Source } from './source.js';

// As in synthetic.py, whose `_blocks` is the twin of `blocks`.
const BLOCKS = 152077;
const BLOCK = 18;
const SCALE = [0x00, 0x1c]; // 2 ** -8 as f16
const SEED = 0x9e3779b9;

/**
 * What a file is. Where no fill says otherwise its bytes behind the header are 0.
 * @typedef {object} Recipe
 * @property {string} name
 * @property {Uint8Array} header
 * @property {number} size bytes of the file
 * @property {{offset: number, length: number, pattern: 'blocks' | 'ones', start: number}[]} fills in the file's order:
 *   `length` bytes from `offset` on are a pattern from its byte `start` on, which begins anew at its end
 */

/** Blocks of Q4_0: a scale, and codes from xorshift32, of which none is 0, so that the mean is 0. */
function blocks() {
  const words = new Uint32Array(BLOCKS * 4);
  let state = SEED;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  const even = Uint8Array.from({ length: 256 }, (_, byte) => (byte & 15 || 8) | ((byte >> 4 || 8) << 4));
  const codes = new Uint8Array(words.buffer).map((byte) => even[byte]);
  const bytes = new Uint8Array(BLOCKS * BLOCK);
  for (let block = 0; block < BLOCKS; block++) {
    bytes.set(SCALE, block * BLOCK);
    bytes.set(codes.subarray(block * 16, block * 16 + 16), block * BLOCK + 2);
  }
  return bytes;
}

const patterns = () => ({ blocks: blocks(), ones: new Uint8Array(new Float32Array(4096).fill(1).buffer) });

/** The pieces of a pattern that make up `length` bytes of it, as [first, end]. */
function* pieces(pattern, from, length) {
  let start = from % pattern.length;
  for (let left = length; left > 0; start = 0) {
    const end = Math.min(start + left, pattern.length);
    yield [start, end];
    left -= end - start;
  }
}

class RandomSource extends Source {
  #made = patterns();

  /** @param {Recipe} recipe */
  constructor(recipe, options) {
    super({ size: recipe.size, name: recipe.name, ...options });
    this.recipe = recipe;
  }

  async part(index, signal = this.signal) {
    signal.check();
    const bytes = this.#bytes(index * PART, partLength(this.size, index));
    this.progress.at(index, bytes.length);
    return bytes;
  }

  #bytes(offset, length) {
    const out = new Uint8Array(length);
    out.set(this.recipe.header.subarray(offset, offset + length));
    for (const fill of this.recipe.fills) {
      const first = Math.max(fill.offset, offset);
      const end = Math.min(fill.offset + fill.length, offset + length);
      const pattern = this.#made[fill.pattern];
      let at = first - offset;
      for (const piece of pieces(pattern, fill.start + first - fill.offset, end - first)) {
        out.set(pattern.subarray(...piece), at);
        at += piece[1] - piece[0];
      }
    }
    return out;
  }
}

/**
 * A file of random weights as a source of weights.js.
 * @param {Recipe} recipe
 * @param {object} [options]
 * @param {Signal | AbortSignal} [options.signal] ends reads and the load
 * @param {(done: number, total: number, secondsLeft?: number) => void} [options.onProgress]
 * @returns {Source}
 */
export function randomSource(recipe, { signal, onProgress } = {}) {
  return new RandomSource(recipe, { signal: Signal.from(signal), onProgress });
}

/**
 * The same file as a Blob, for what takes files only. It refers to one copy of the pattern many times, so it takes a
 * few MB whatever its size is.
 * @param {Recipe} recipe
 * @returns {Blob}
 */
export function randomBlob({ header, size, fills }) {
  const made = patterns();
  const blobs = Object.fromEntries(Object.entries(made).map(([name, bytes]) => [name, new Blob([bytes])]));
  const content = [header];
  let end = header.length;
  for (const { offset, length, pattern, start } of fills) {
    content.push(new Uint8Array(offset - end));
    for (const piece of pieces(made[pattern], start, length)) content.push(blobs[pattern].slice(...piece));
    end = offset + length;
  }
  return new Blob([...content, new Uint8Array(size - end)]);
}
