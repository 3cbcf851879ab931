/** Model files to the GPU: ranges of a source into buffers, never through the wasm heap. */
import { PART } from './parts.js';
import { Signal } from './signal.js';

export { PART } from './parts.js';
export { openSource, Source } from './source.js';

/** Something that `stop()` ends a load with; for `openSource` and `load`. */
export const signal = () => new Signal();

/** See random.js, which a visit that measures nothing does without. */
export const randomSource = async (...given) => (await import('./random.js')).randomSource(...given);

/** The bytes, filled up to the words that WebGPU writes: an odd number of 34-byte blocks ends half-way in one. */
function wholeWords(bytes) {
  if (bytes.length % 4 === 0) return bytes;
  const whole = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  whole.set(bytes);
  return whole;
}

/** Parts in order, the next one on its way while one is used. */
async function* parts(source, stop) {
  let coming = source.part(0, stop);
  for (let index = 0; index < source.parts; index++) {
    const bytes = await coming;
    stop.check();
    coming = index + 1 < source.parts ? source.part(index + 1, stop) : null;
    coming?.catch(() => {});
    yield bytes;
  }
}

async function stream(bridge, source, steps, stop) {
  let next = 0;
  let start = 0;
  let before = 0;
  for await (const bytes of parts(source, stop)) {
    const end = start + bytes.length;
    for (; next < steps.length && steps[next] < end; next += 5) {
      const [offset, length, buffer, target, program] = steps.slice(next, next + 5);
      const from = Math.max(offset, start);
      const to = Math.min(offset + length, end);
      bridge.write(buffer, target + from - offset, wholeWords(bytes.subarray(from - start, to - start)));
      if (offset + length > end) break; // the rest comes with the next part
      if (program) bridge.submit(program);
    }
    start += PART;
    // a disk is faster than a GPU: two parts wait in the queue at most
    if (before) await stop.race(bridge.collect(before));
    before = bridge.submit(0);
  }
  await stop.race(bridge.collect(before));
}

/**
 * Streams ranges of a source into buffers. `steps` is a flat list of (file offset, length, buffer, buffer offset,
 * program), sorted by file offset; after a range has arrived whole its program (0: none) is submitted.
 * @param {(done: number, total: number, secondsLeft?: number) => void} [onProgress] bytes of the file
 * @param {Signal | AbortSignal} [signal] ends it at any point with StoppedError; the source's own where left out
 */
export async function load(bridge, source, steps, onProgress, signal) {
  const stop = new Signal();
  const forget = Signal.from(signal ?? source.signal).onStop(() => stop.stop());
  bridge.lost.then(() => stop.stop());
  const { report } = source.progress;
  if (onProgress) source.progress.report = (...news) => stop.stopped || onProgress(...news);
  source.progress.tell();
  try {
    await stream(bridge, source, steps, stop);
  } catch (error) {
    if (bridge.lostReason) bridge.check();
    throw error;
  } finally {
    stop.stop(); // the part that was on its way
    forget();
    source.progress.report = report;
  }
}
