/**
 * Model files by byte range: network or OPFS to GPU, never through the wasm heap.
 * A file is handled in parts of 16 MiB. A part is checked against its SHA-256 (from the registry where known, else
 * recorded at the first load), kept in OPFS, and only then used.
 */
import { BridgeError } from './gpu.js';

export const PART = 16 * 1024 * 1024;

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const sha256 = async (bytes) => hex(await crypto.subtle.digest('SHA-256', bytes));

/** Reads ranges of a URL over HTTP. @returns {Promise<{size: number, tag: string, fetchRange: Function}>} */
export async function httpRanges(url) {
  const request = async (first, last) => {
    let response;
    try {
      response = await fetch(url, { headers: { Range: `bytes=${first}-${last}` }, cache: 'no-store' });
    } catch (error) {
      throw new BridgeError('NetworkError', `${url} could not be fetched (${error.message}).`);
    }
    if (response.status === 206) return response;
    await response.body?.cancel();
    const reason = response.ok ? 'the server ignores byte ranges' : `the server answered ${response.status}`;
    throw new BridgeError('NetworkError', `${url} could not be fetched: ${reason}.`);
  };
  const head = await request(0, 0);
  await head.arrayBuffer();
  const size = Number(head.headers.get('Content-Range')?.split('/')[1]);
  if (!size) throw new BridgeError('NetworkError', `${url}: the server does not say how long the file is.`);
  const tag = head.headers.get('ETag') ?? head.headers.get('Last-Modified') ?? '';
  const fetchRange = async (offset, length, onBytes = () => {}) => {
    const response = await request(offset, offset + length - 1);
    const bytes = new Uint8Array(length);
    let filled = 0;
    try {
      for await (const chunk of response.body) {
        bytes.set(chunk, filled);
        filled += chunk.length;
        onBytes(chunk.length);
      }
    } catch (error) {
      throw new BridgeError('NetworkError', `The download of ${url} broke off (${error.message}).`);
    }
    if (filled !== length) throw new BridgeError('NetworkError', `The download of ${url} broke off.`);
    return bytes;
  };
  return { size, tag, fetchRange };
}

/** A file's parts in OPFS and what is known of them. One writer at a time: the sync access handle locks the file. */
class PartStore {
  /** @param {string} tag the server's validator of this version of the file, or nothing */
  static async open(name, size, tag) {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('models', { create: true });
    const file = await folder.getFileHandle(`${name}.bin`, { create: true });
    const note = await folder.getFileHandle(`${name}.json`, { create: true });
    const store = new PartStore();
    store.file = await file.createSyncAccessHandle();
    store.note = await note.createSyncAccessHandle();
    Object.assign(store, { size, tag });
    store.hashes = store.#recorded();
    return store;
  }

  #recorded() {
    const bytes = new Uint8Array(this.note.getSize());
    this.note.read(bytes, { at: 0 });
    try {
      const record = JSON.parse(new TextDecoder().decode(bytes));
      if (record.size === this.size && record.tag === this.tag && record.part === PART) return record.hashes;
    } catch {
      // a half-written record: the parts are fetched again
    }
    return [];
  }

  read(index, length) {
    const bytes = new Uint8Array(length);
    return this.file.read(bytes, { at: index * PART }) === length ? bytes : null;
  }

  /** The hash is recorded after the bytes are on disk, so a part that broke off is never taken for whole. */
  write(index, bytes, hash) {
    this.file.write(bytes, { at: index * PART });
    this.file.flush();
    this.hashes[index] = hash;
    const record = new TextEncoder().encode(JSON.stringify({ size: this.size, tag: this.tag, part: PART, hashes: this.hashes }));
    this.note.truncate(0);
    this.note.write(record, { at: 0 });
    this.note.flush();
  }

  close() {
    this.file.close();
    this.note.close();
  }
}

/** A model file: parts from OPFS where they are whole, else from the network. */
export class Source {
  /**
   * @param {{size: number, fetchRange: Function, hashes?: string[], store?: PartStore}} options
   *   `hashes`: SHA-256 of each part, from the registry
   */
  constructor({ size, fetchRange, hashes = [], store = null, name = 'the model file' }) {
    Object.assign(this, { size, fetchRange, hashes, store, name });
    this.fetched = 0;
    this.notKept = '';
    this.recent = null;
  }

  #length(index) {
    return Math.min(PART, this.size - index * PART);
  }

  async #kept(index) {
    const wanted = this.hashes[index] ?? this.store?.hashes[index];
    if (!this.store?.hashes[index]) return null;
    const bytes = this.store.read(index, this.#length(index));
    return bytes && (await sha256(bytes)) === wanted ? bytes : null;
  }

  #keep(index, bytes, hash) {
    if (!this.store) return;
    try {
      this.store.write(index, bytes, hash);
    } catch (error) {
      // a full disk costs the next visit a download, not this one its answer
      this.notKept = error.name;
      this.store.close();
      this.store = null;
    }
  }

  /** One part, checked. @param {(bytes: number) => void} [onBytes] called as bytes arrive */
  async part(index, onBytes) {
    if (this.recent?.index === index) {
      onBytes?.(this.recent.bytes.length);
      return this.recent.bytes;
    }
    let bytes = await this.#kept(index);
    if (!bytes) {
      bytes = await this.fetchRange(index * PART, this.#length(index), onBytes);
      this.fetched += bytes.length;
      const hash = await sha256(bytes);
      const wanted = this.hashes[index];
      if (wanted && wanted !== hash) throw new BridgeError('IntegrityError', `Part ${index + 1} of ${this.name} has the wrong SHA-256.`);
      this.#keep(index, bytes, hash);
    } else {
      onBytes?.(bytes.length);
    }
    this.recent = { index, bytes };
    return bytes;
  }

  /** Bytes of a range, for headers. */
  async read(offset, length) {
    const out = new Uint8Array(Math.max(0, Math.min(length, this.size - offset)));
    for (let at = 0; at < out.length; ) {
      const index = Math.floor((offset + at) / PART);
      const bytes = await this.part(index);
      const from = offset + at - index * PART;
      const piece = bytes.subarray(from, from + out.length - at);
      out.set(piece, at);
      at += piece.length;
    }
    return out;
  }

  close() {
    this.store?.close();
    this.store = null;
    this.recent = null;
  }
}

/**
 * Opens a model by URL, with OPFS behind it where the browser has it.
 * @param {{url: string, name: string, parts?: string[], keep?: boolean}} model
 */
export async function openSource({ url, name, parts = [], keep = true }) {
  const { size, tag, fetchRange } = await httpRanges(url);
  let store = null;
  let notKept = '';
  if (keep) {
    try {
      store = await PartStore.open(name.replace(/[^\w.-]/g, '_'), size, tag);
    } catch (error) {
      notKept = error.name; // private windows have no OPFS; another tab may hold the file
    }
  }
  const source = new Source({ size, fetchRange, hashes: parts, store, name });
  source.notKept = notKept;
  return source;
}

/** The bytes, filled up to the words that WebGPU writes: an odd number of 34-byte blocks ends half-way in one. */
function wholeWords(bytes) {
  if (bytes.length % 4 === 0) return bytes;
  const whole = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  whole.set(bytes);
  return whole;
}

/**
 * Streams ranges of a source into buffers. `steps` is a flat list of (file offset, length, buffer, buffer offset,
 * program), sorted by file offset; after a range has arrived whole its program (0: none) is submitted.
 * @param {(done: number, total: number) => void} onProgress bytes of the file
 * @param {{stopped?: boolean}} [signal] checked between parts
 */
export async function load(bridge, source, steps, onProgress, signal = {}) {
  let next = 0;
  let received = 0;
  const report = (bytes) => onProgress((received += bytes), source.size);
  const last = Math.ceil(source.size / PART);
  let coming = source.part(0, report);
  for (let index = 0; index < last; index++) {
    const bytes = await coming;
    if (signal.stopped) throw new BridgeError('StoppedError', 'Loading was stopped.');
    coming = index + 1 < last ? source.part(index + 1, report) : null;
    coming?.catch(() => {});
    const start = index * PART;
    const end = start + bytes.length;
    for (; next < steps.length && steps[next] < end; next += 5) {
      const [offset, length, buffer, target, program] = steps.slice(next, next + 5);
      const from = Math.max(offset, start);
      const to = Math.min(offset + length, end);
      bridge.write(buffer, target + from - offset, wholeWords(bytes.subarray(from - start, to - start)));
      if (offset + length > end) break; // the rest comes with the next part
      if (program) bridge.submit(program);
    }
    bridge.check();
  }
  await bridge.collect(bridge.submit(0));
}
