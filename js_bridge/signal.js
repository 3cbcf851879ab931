import { BridgeError } from './errors.js';

/** Stops a load at any point: shared by whoever waits and whoever may cancel, in JavaScript and in Python. */
export class Signal {
  #controller = new AbortController();

  /** @param {Signal | AbortSignal} [given] @returns {Signal} */
  static from(given) {
    if (given instanceof Signal) return given;
    const signal = new Signal();
    if (given?.aborted) signal.stop();
    given?.addEventListener('abort', () => signal.stop(), { once: true });
    return signal;
  }

  get stopped() {
    return this.#controller.signal.aborted;
  }

  stop() {
    this.#controller.abort();
  }

  /** @throws {BridgeError} StoppedError */
  check() {
    if (this.stopped) throw new BridgeError('StoppedError', 'Loading was stopped.');
  }

  /** Calls `act` once it is stopped, now where it is already. @returns {() => void} takes that back */
  onStop(act) {
    if (this.stopped) act();
    else this.#controller.signal.addEventListener('abort', act, { once: true });
    return () => this.#controller.signal.removeEventListener('abort', act);
  }

  /**
   * The promise's result, or StoppedError as soon as it is stopped.
   * @template T @param {Promise<T>} promise @returns {Promise<T>}
   */
  async race(promise) {
    let forget;
    const stopped = new Promise((resolve) => (forget = this.onStop(resolve)));
    try {
      const result = await Promise.race([promise, stopped]);
      this.check();
      return result;
    } finally {
      forget();
    }
  }
}
