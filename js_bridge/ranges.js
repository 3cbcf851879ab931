/** Byte ranges of a file: over HTTP, and of a `File` that the visitor picked. */
import { BridgeError } from './errors.js';
import { Signal } from './signal.js';

/** Pauses before a request that failed is made again, in ms; a connection that gave bytes starts over. */
const WAITS = [500, 1500, 4000];
const FIRST_WAITS = 2; // a wrong address looks like a broken connection
const STALL = 30_000; // ms without a byte after which a connection counts as broken

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A NetworkError; `passing` where trying again may help. */
function failed(message, passing = true) {
  return Object.assign(new BridgeError('NetworkError', message), { passing });
}

const tagOf = ({ headers }) => headers.get('ETag') ?? headers.get('Last-Modified') ?? '';

/** First byte and file size of a 206 answer; NaN where another origin doesn't show them. */
function placed(response) {
  const [, first, size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '') ?? [];
  return { first: Number(first), size: Number(size) };
}

/** The bytes of one answer, in order. */
class Connection {
  #controller = new AbortController();
  #rest = null;

  constructor(url, stall) {
    Object.assign(this, { url, stall, at: 0 });
  }

  async request(headers, method = 'GET') {
    const response = await this.#inTime(() =>
      fetch(this.url, { method, headers, cache: 'no-store', signal: this.#controller.signal }),
    );
    this.reader = response.body?.getReader();
    return response;
  }

  /** At most `limit` bytes. */
  async read(limit) {
    const chunk = this.#rest ?? (await this.#arriving());
    this.#rest = chunk.length > limit ? chunk.subarray(limit) : null;
    const piece = chunk.subarray(0, limit);
    this.at += piece.length;
    return piece;
  }

  async #arriving() {
    const { done, value } = await this.#inTime(() => this.reader.read());
    if (done) throw failed(`The download of ${this.url} broke off.`);
    return value;
  }

  async #inTime(act) {
    const silent = () => this.#controller.abort(new Error(`nothing came for ${this.stall / 1000} seconds`));
    const timer = setTimeout(silent, this.stall);
    try {
      return await act();
    } catch (error) {
      throw failed(`${this.url} could not be fetched (${error.message}).`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes it where the server sends more than it was asked for. */
  end() {
    if (this.#rest) this.close();
  }

  close() {
    this.#controller.abort();
  }
}

/** A file on a web server. All its bytes come from one version of it, or the read fails. */
export class HttpFile {
  #whole = null;

  /**
   * @param {string} url
   * @param {object} [known]
   * @param {number} [known.size] bytes of the file; asked for in `probe` where left out
   * @param {string} [known.tag] the server's validator of the version that is wanted
   * @param {boolean} [known.pinned] every part's SHA-256 is known, so validators don't matter
   */
  constructor(url, { size = 0, tag = '', pinned = false, waits = WAITS, stall = STALL } = {}) {
    Object.assign(this, { url, size, tag, pinned, waits, stall });
  }

  /** Asks for size and version. @param {Signal} [signal] @param {boolean} [patient] tries more than once */
  async probe(signal = new Signal(), patient = true) {
    const waits = patient ? this.waits.slice(0, FIRST_WAITS) : [];
    await this.#patiently(signal, waits, async () => {
      const connection = await this.#connect(0, 1, signal);
      if (connection !== this.#whole) await connection.read(1); // an answer that is read leaves its socket for the next
    });
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @param {(filled: number) => void} [onBytes] called with the bytes that are there, as they arrive
   * @param {Signal} [signal]
   * @returns {Promise<Uint8Array>}
   */
  async fetchRange(offset, length, onBytes = () => {}, signal = new Signal()) {
    const bytes = new Uint8Array(length);
    let filled = 0;
    await this.#patiently(signal, this.waits, async (alive) => {
      if (filled === length) return;
      const connection = await this.#connect(offset + filled, length - filled, signal);
      const forget = signal.onStop(() => connection.close());
      try {
        while (connection.at < offset + filled) await connection.read(offset + filled - connection.at);
        while (filled < length) {
          const chunk = await connection.read(length - filled);
          bytes.set(chunk, filled);
          filled += chunk.length;
          alive();
          onBytes(filled);
        }
      } catch (error) {
        this.#drop(connection);
        throw error;
      } finally {
        forget();
      }
      if (connection !== this.#whole) connection.end();
    });
    return bytes;
  }

  close() {
    this.#drop(this.#whole);
  }

  #drop(connection) {
    connection?.close();
    if (connection === this.#whole) this.#whole = null;
  }

  /** Does `act` again after a failure that may pass, as often as `waits` says since `alive` was last called. */
  async #patiently(signal, waits, act) {
    let failures = 0;
    for (;;) {
      signal.check();
      try {
        return await act(() => (failures = 0));
      } catch (error) {
        signal.check();
        if (!error.passing || failures === waits.length) throw error;
        await signal.race(pause(waits[failures++]));
      }
    }
  }

  /** A connection at `offset`, or before it where the server sends the file from its beginning. */
  async #connect(offset, length, signal) {
    if (this.#whole?.at <= offset) return this.#whole;
    this.close();
    const connection = new Connection(this.url, this.stall);
    const forget = signal.onStop(() => connection.close());
    try {
      const response = await connection.request({ Range: `bytes=${offset}-${offset + length - 1}` });
      await this.#accept(response, connection, offset, signal);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      forget();
    }
  }

  async #accept(response, connection, offset, signal) {
    const { status } = response;
    if (status === 416) {
      if (!offset) throw new BridgeError('ModelFileError', `${this.url} is empty.`);
      throw this.#changed();
    }
    if (status !== 206 && status !== 200) {
      const passing = status >= 500 || status === 408 || status === 429;
      throw failed(`${this.url} could not be fetched: the server answered ${status}.`, passing);
    }
    const { first, size } = status === 206 ? placed(response) : { first: 0, size: this.#bodySize(response) };
    if (status === 206 && first >= 0 && first !== offset) {
      throw failed(`${this.url} could not be fetched: the server sent other bytes than it was asked for.`, false);
    }
    connection.at = status === 206 ? offset : 0;
    this.#identify(size || this.size || (await this.#askedSize(signal)), tagOf(response));
    if (status === 200) this.#whole = connection;
  }

  /** The first answer says which version this is, where that wasn't known before; later ones must agree. */
  #identify(size, tag) {
    if (!size) throw failed(`${this.url}: the server does not say how long the file is.`, false);
    if (this.size && this.size !== size) throw this.#changed(`it has ${size} bytes, not ${this.size}`);
    if (!this.pinned && this.tag && tag && this.tag !== tag) throw this.#changed();
    this.size = size;
    this.tag ||= tag;
  }

  #bodySize({ headers }) {
    return headers.has('Content-Encoding') ? 0 : Number(headers.get('Content-Length'));
  }

  /** A server of another origin may hide `Content-Range`, but never `Content-Length`. */
  async #askedSize(signal) {
    const connection = new Connection(this.url, this.stall);
    const forget = signal.onStop(() => connection.close());
    try {
      const response = await connection.request({}, 'HEAD');
      return response.ok ? this.#bodySize(response) : 0;
    } finally {
      forget();
    }
  }

  #changed(how = 'it changed since its first bytes were read') {
    return new BridgeError('IntegrityError', `${this.url} is another file than the one wanted: ${how}.`);
  }
}

/** A file that the visitor picked; it is read where it lies. */
export class PickedFile {
  /** @param {File} file */
  constructor(file) {
    Object.assign(this, { file, size: file.size, tag: String(file.lastModified) });
  }

  async fetchRange(offset, length, onBytes = () => {}, signal = new Signal()) {
    let buffer;
    try {
      buffer = await signal.race(this.file.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      if (error instanceof BridgeError) throw error;
      throw new BridgeError('ModelFileError', `${this.file.name} could not be read (${error.message}).`);
    }
    onBytes(length);
    return new Uint8Array(buffer);
  }

  close() {}
}
