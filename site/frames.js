/**
 * Frames of the page while a model decodes: a second device submits a small pass every 16.7 ms and waits for it, as a
 * display would. docs/responsiveness.md says what the numbers mean.
 */
import { Assistant } from './js_bridge/client.js';

const FRAME = 1000 / 60; // ms
const IDLE = 2; // seconds
const MOST_REPLIES = 200; // for one row, where replies end at once
const QUESTION = 'Write a long story about a lighthouse, a storm and a ship that comes home late.';
const TEXT =
  'The harbour of Linsund has one boat. It is painted bright yellow and carries post twice a week. In winter the ' +
  'keeper of the lighthouse rows out to meet it, since the ice makes the quay slippery. In spring the children of ' +
  'the village paint its name anew, and whoever holds the brush may ring the bell at noon.';

/** URL of a worker whose GPU does so many microseconds of idle work more behind every dispatch. */
export const slowedWorker = (microseconds) => new URL(`slowed-worker.js?spin=${microseconds}`, import.meta.url).href;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/** The number below which `part` of the sorted numbers lie; null where there are none. */
function percentile(numbers, part) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}

/** Draws a small picture every 16.7 ms on a device of its own and keeps when each was done. */
class FrameLoop {
  /** `at`: when the pass was done; `interval`: since the one before; `latency`: since it was submitted; all in ms. */
  frames = [];
  #device;
  #view;
  #running = true;

  static async open() {
    const adapter = await navigator.gpu.requestAdapter();
    return new FrameLoop(await adapter.requestDevice());
  }

  constructor(device) {
    this.#device = device;
    const usage = GPUTextureUsage.RENDER_ATTACHMENT;
    this.#view = device.createTexture({ size: [256, 256], format: 'rgba8unorm', usage }).createView();
    this.#run();
  }

  async #run() {
    let [due, last] = [performance.now(), null];
    while (this.#running) {
      const start = performance.now();
      await this.#draw();
      const at = performance.now();
      if (last !== null) this.frames.push({ at, interval: at - last, latency: at - start });
      last = at;
      due += FRAME * Math.max(1, Math.ceil((at - due) / FRAME)); // beats that are over are dropped
      await pause(due - at);
    }
    this.#device.destroy();
  }

  #draw() {
    const encoder = this.#device.createCommandEncoder();
    encoder.beginRenderPass({ colorAttachments: [{ view: this.#view, loadOp: 'clear', storeOp: 'store' }] }).end();
    this.#device.queue.submit([encoder.finish()]);
    return this.#device.queue.onSubmittedWorkDone();
  }

  stop() {
    this.#running = false;
  }

  /** Frames that were done within any of the spans [from, to], in numbers; null where nothing was. */
  within(spans) {
    const seen = this.frames.filter(({ at }) => spans.some(([from, to]) => from < at && at <= to));
    const time = spans.reduce((sum, [from, to]) => sum + to - from, 0);
    if (!seen.length) return null;
    const intervals = seen.map(({ interval }) => interval);
    const latencies = seen.map(({ latency }) => latency);
    return {
      frames: seen.length,
      fps: (1000 * seen.length) / time,
      p50: percentile(intervals, 0.5),
      p99: percentile(intervals, 0.99),
      latency: { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) },
    };
  }
}

/** One reply, and when it was prefilled and decoded. */
async function timed(assistant, options) {
  let [begun, prefilled] = [null, null];
  const onProgress = ({ stage, done, total }) => {
    if (stage !== 'prefill') return;
    begun ??= performance.now();
    if (done === total) prefilled = performance.now();
  };
  const { question, ...rest } = options;
  const reply = await assistant.ask(question, { ...rest, onProgress, reuse: false });
  return { reply, prefill: [begun, prefilled], decode: [prefilled, performance.now()] };
}

async function row(assistant, loop, options, seconds) {
  const replies = [];
  const decoded = () => replies.reduce((sum, { decode: [from, to] }) => sum + to - from, 0);
  do {
    replies.push(await timed(assistant, options));
    options.signal?.throwIfAborted();
  } while (decoded() < 1000 * seconds && replies.length < MOST_REPLIES);
  const sum = (of) => replies.reduce((total, { reply }) => total + of(reply), 0);
  const { window, frameBudget = null, mode } = options;
  const behindFirst = sum(({ times, tokens_per_second: rate }) => rate * times.decode);
  return {
    mode,
    window,
    frameBudget,
    ...loop.within(replies.map(({ decode }) => decode)),
    msPerToken: behindFirst ? (1000 * sum(({ times }) => times.decode)) / behindFirst : null,
    prefill: loop.within(replies.map(({ prefill }) => prefill)),
    tokens: sum(({ reply_ids: ids }) => ids.length),
    paused: sum(({ times }) => times.paused),
    leastShare: Math.min(...replies.map(({ reply }) => reply.least_share)),
  };
}

/**
 * Frames of a page whose model decodes, for each window size without and with a frame budget, and of the idle page.
 * @param {Assistant} assistant
 * @param {object} [options]
 * @param {number[]} [options.windows] steps of a window
 * @param {(number | null)[]} [options.budgets] frame budgets in ms; null is none
 * @param {string} [options.mode]
 * @param {number} [options.tokens] of a reply
 * @param {number} [options.seconds] of decoding for each row: replies are repeated until then
 * @param {string} [options.question]
 * @param {string} [options.text]
 * @param {AbortSignal} [options.signal]
 * @param {(progress: {stage: string, done: number, total: number, note: string}) => void} [options.onProgress]
 * @returns {Promise<{idle: object, rows: object[]}>} idle: frames, fps (passes done a second), p50 and p99 (ms from one
 *   done to the next), latency {p50, p99} (ms from submission to done); a row has the same of its decoding, and mode,
 *   window, frameBudget, msPerToken, prefill (numbers as those of idle; null where it was too short), tokens, paused
 *   (seconds) and leastShare (of the GPU)
 */
export async function measureFrames(assistant, options = {}) {
  const { windows = [1, 2, 4, 8], budgets = [null, 16.7], seconds = 5, mode = 'loop', tokens = 128 } = options;
  const { question = QUESTION, text = TEXT, signal, onProgress } = options;
  const asked = { question, text, mode, maxTokens: tokens, signal };
  const cases = windows.flatMap((window) => budgets.map((budget) => ({ window, frameBudget: budget ?? undefined })));
  const say = (done, note) => onProgress?.({ stage: 'frames', done, total: cases.length, note });
  await timed(assistant, { ...asked, maxTokens: 4 }); // compiles what is left to compile
  const loop = await FrameLoop.open();
  try {
    say(0, 'Frames of the idle page');
    await pause(200); // the first passes of a device are slow
    const start = performance.now();
    await pause(1000 * IDLE);
    const idle = loop.within([[start, performance.now()]]);
    const rows = [];
    for (const one of cases) {
      say(rows.length, `Frames, window ${one.window}, ${one.frameBudget ? `budget ${one.frameBudget} ms` : 'no budget'}`);
      rows.push(await row(assistant, loop, { ...asked, ...one }, seconds));
    }
    say(cases.length, '');
    return { idle, rows };
  } finally {
    loop.stop();
  }
}

/**
 * The same on an artificially slowed GPU; each row also has `spin`.
 * @param {object} load options of `Assistant.load`
 * @param {number} spin microseconds of work behind every dispatch
 * @param {object} [options] as in `measureFrames`
 */
export async function measureSlowedFrames(load, spin, options) {
  const assistant = await Assistant.load({ ...load, worker: slowedWorker(spin) });
  try {
    const { idle, rows } = await measureFrames(assistant, options);
    return { idle, rows: rows.map((one) => ({ ...one, spin })) };
  } finally {
    assistant.close();
  }
}
