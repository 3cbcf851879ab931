/**
 * Watches whether a page's frames come in time while a model works, with two signals. The intervals between animation
 * frames are what the visitor sees; but a page that draws nothing new has no work that a busy GPU could delay. So a
 * pass over one pixel goes to the GPU with every frame, from a device of the page's own, and waits there as a
 * frame's drawing would. Which of them tells when: docs/responsiveness.md.
 */

const NEWS = 250; // ms from news to news
const SOON = 2; // late frames that are told of at once
const WARM = 3; // probes that a new device is slow with
const LATE = 1.5; // frames between two that a display shows

/** The device that waits, opened once; null where there is none (any more). */
let probing = null;

async function openProbe() {
  const adapter = await navigator.gpu?.requestAdapter();
  const device = await adapter?.requestDevice();
  if (!device) return null;
  const lost = device.lost.then(() => (probing = null));
  const usage = GPUTextureUsage.RENDER_ATTACHMENT;
  const view = device.createTexture({ size: [1, 1], format: 'rgba8unorm', usage }).createView();
  const colorAttachments = [{ view, loadOp: 'clear', storeOp: 'store' }];
  /** Milliseconds until one pixel is drawn. */
  const probe = async () => {
    const start = performance.now();
    const encoder = device.createCommandEncoder();
    encoder.beginRenderPass({ colorAttachments }).end();
    device.queue.submit([encoder.finish()]);
    await Promise.race([device.queue.onSubmittedWorkDone(), lost]);
    return performance.now() - start;
  };
  for (let i = 0; i < WARM; i++) await probe();
  return probe;
}

/**
 * Judges frames. Pure: times come in, news go out.
 * @param {number} budget ms that a frame may take
 */
export class FrameJudge {
  #budget;
  #last = null;
  #lagged = false;
  #shortest = Infinity;

  constructor(budget) {
    this.#budget = budget;
  }

  /** The page was hidden: the next interval says nothing. */
  pause() {
    this.#last = null;
  }

  /**
   * @param {number} time when the frame began, as the browser tells a callback of requestAnimationFrame
   * @param {number} now when the callback ran
   * @param {number} waited ms that the last probe waited for the GPU, or that it waits by now
   * @returns {boolean | null} whether the GPU made the frame late; null where that can't be said
   */
  frame(time, now, waited) {
    const interval = this.#last === null ? null : time - this.#last;
    this.#last = time;
    // The page's own scripts held the thread: frame and probe are late by that, whatever the GPU does.
    const lagged = now - time > this.#budget / 2;
    const excused = lagged || this.#lagged;
    this.#lagged = lagged;
    if (interval === null) return null;
    // A display of 30 Hz is not late: its shortest interval is.
    if (interval > 0) this.#shortest = Math.min(this.#shortest, interval);
    if (excused) return null;
    return interval > LATE * Math.max(this.#budget, this.#shortest) || waited > this.#budget;
  }
}

/**
 * Watches the page's frames until stopped.
 * @param {number} budget ms that a frame may take
 * @param {(news: {frames?: number, late?: number, hidden?: boolean}) => void} report called four times a second with the
 *   frames since the last call and those of them that were late, at once when frames come late, and when the page is
 *   hidden, where no more frames come
 * @returns {() => void} stops it
 */
export function watchFrames(budget, report) {
  const judge = new FrameJudge(budget);
  let news = { frames: 0, late: 0 };
  let told = performance.now();
  let probe = null;
  let waiting = null; // when the probe in flight was sent
  let waited = 0;
  probing ??= openProbe().catch(() => null);
  probing.then((opened) => (probe = opened));

  const send = () => {
    if (!probe || waiting !== null) return;
    waiting = performance.now();
    probe().then(
      (milliseconds) => {
        waited = milliseconds;
        waiting = null;
      },
      () => (probe = null),
    );
  };
  const frame = (time) => {
    next = requestAnimationFrame(frame);
    const now = performance.now();
    const late = judge.frame(time, now, waiting === null ? waited : now - waiting);
    waited = 0;
    if (late !== null) news.frames++;
    if (late) news.late++;
    send();
    if (!news.frames || (now - told < NEWS && news.late < SOON)) return;
    report(news);
    told = now;
    news = { frames: 0, late: 0 };
  };
  const hidden = () => {
    if (!document.hidden) return;
    judge.pause();
    report({ hidden: true });
  };

  let next = requestAnimationFrame(frame);
  document.addEventListener('visibilitychange', hidden);
  return () => {
    cancelAnimationFrame(next);
    document.removeEventListener('visibilitychange', hidden);
  };
}
