const REPORT_EVERY = 100; // ms: a report crosses into Python and to the page
const SAMPLE_EVERY = 250;
const WINDOW = 10_000; // ms over which the rate is measured
const FIRST_ESTIMATE = 1000;

/** Bytes of a file that are there, part by part, and the time that the rest will take. */
export class Progress {
  #parts = [];
  #samples = [];
  #fetched = 0;
  #reported = -Infinity;

  /** @param {number} total bytes @param {() => number} [now] milliseconds */
  constructor(total, now = () => performance.now()) {
    Object.assign(this, { total, now, done: 0, report: () => {} });
  }

  /**
   * Notes that the first `bytes` bytes of a part are there. A part that is read again counts once.
   * @param {boolean} [kept] it was on this device, which says nothing about the connection
   */
  at(part, bytes, kept = false) {
    const more = bytes - (this.#parts[part] ?? 0);
    if (more <= 0) return;
    this.#parts[part] = bytes;
    this.done += more;
    if (!kept) this.#sample(more);
    if (this.done === this.total || this.now() - this.#reported >= REPORT_EVERY) this.tell();
  }

  #sample(bytes) {
    const time = this.now();
    this.#fetched += bytes;
    const newest = this.#samples.at(-1);
    if (newest && time - newest.time < SAMPLE_EVERY) return;
    this.#samples.push({ time, fetched: this.#fetched });
    while (time - this.#samples[0].time > WINDOW && this.#samples.length > 2) this.#samples.shift();
  }

  /** Reports how far it is: bytes, all bytes, seconds left. */
  tell() {
    this.#reported = this.now();
    this.report(this.done, this.total, this.left);
  }

  /** Seconds left at the rate of the last seconds; undefined where nothing is known of it. */
  get left() {
    const [oldest] = this.#samples;
    const seconds = oldest ? (this.now() - oldest.time) / 1000 : 0;
    const fetched = this.#fetched - (oldest?.fetched ?? 0);
    if (this.done === this.total) return 0;
    if (seconds * 1000 < FIRST_ESTIMATE || !fetched) return undefined;
    return ((this.total - this.done) * seconds) / fetched;
  }
}
