/** A model file in parts: from this device where they are there and right, else from the network or a picked file. */
import { BridgeError } from './errors.js';
import { PartStore, partCount, partLength, PART, sha256 } from './parts.js';
import { Progress } from './progress.js';
import { HttpFile, PickedFile } from './ranges.js';
import { Signal } from './signal.js';

/** A model file: parts from OPFS where they are whole, else from where the file is. */
export class Source {
  /** Bytes that came from elsewhere, not from OPFS. */
  fetched = 0;
  /** Why parts aren't kept; empty where they are. */
  notKept = '';
  #recent = null;

  /**
   * @param {object} options
   * @param {number} options.size
   * @param {Function} options.fetchRange bytes of (offset, length, onBytes, signal)
   * @param {string[]} [options.hashes] SHA-256 of each part, from the registry
   * @param {PartStore} [options.store]
   * @param {Signal} [options.signal] ends reads and the load
   * @param {(done: number, total: number, secondsLeft?: number) => void} [options.onProgress]
   */
  constructor({ size, fetchRange, hashes = [], store = null, name = 'the model file', ...rest }) {
    const { signal = new Signal(), onProgress, close = () => {} } = rest;
    Object.assign(this, { size, fetchRange, hashes, store, name, signal, closeFile: close });
    this.progress = new Progress(size);
    if (onProgress) this.progress.report = onProgress;
  }

  get parts() {
    return partCount(this.size);
  }

  /** Seconds that the rest will take at the rate of the last seconds, or undefined. */
  get secondsLeft() {
    return this.progress.left;
  }

  async #keep(index, bytes, hash) {
    if (!this.store || this.notKept) return;
    try {
      await this.store.write(index, bytes, hash);
    } catch (error) {
      // A full disk costs the next visit a download, not this one its answer; what another tab has it keeps itself.
      if (error.name !== 'NoModificationAllowedError') this.notKept = error.name;
    }
  }

  async #fetched(index, signal) {
    const arrived = (filled) => this.progress.at(index, filled);
    const bytes = await this.fetchRange(index * PART, partLength(this.size, index), arrived, signal);
    this.fetched += bytes.length;
    const hash = await sha256(bytes);
    if (this.hashes[index] && this.hashes[index] !== hash) {
      throw new BridgeError('IntegrityError', `Part ${index + 1} of ${this.name} has the wrong SHA-256.`);
    }
    await this.#keep(index, bytes, hash);
    return bytes;
  }

  /** One part, checked. @param {Signal} [signal] */
  async part(index, signal = this.signal) {
    signal.check();
    if (this.#recent?.index === index) return this.#recent.bytes;
    const kept = await this.store?.read(index, this.hashes[index]);
    const bytes = kept ?? (await this.#fetched(index, signal));
    this.progress.at(index, bytes.length, Boolean(kept));
    signal.check();
    this.#recent = { index, bytes };
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
    this.closeFile();
    this.progress.report = () => {};
    this.store = null;
    this.#recent = null;
  }
}

/** Where a URL's file comes from; a validator tells versions apart, so a query (signatures, expiry) doesn't. */
function placeOf(url, tag) {
  const { origin, pathname, search } = new URL(url, globalThis.location?.href);
  return `${origin}${pathname}${tag ? '' : search}`;
}

/** The version of a URL's file that is all here, or nothing. */
async function keptOf(url, store) {
  const whole = await store?.whole();
  return whole?.from === placeOf(url, whole?.tag) ? whole : null;
}

/** A file by URL and the version of it that parts are kept of. */
async function openUrl({ url, size, pinned, store, options }) {
  const file = new HttpFile(url, { ...options, size, pinned });
  if (pinned) return { file, version: { size, from: placeOf(url, ''), tag: '' } };
  try {
    await file.probe(options.signal, false);
  } catch (error) {
    if (!error.passing) throw error;
    // without a network a file that is all here is used as it is
    const known = await keptOf(url, store);
    if (known) return { file: new HttpFile(url, { ...options, ...known }), version: known };
    await file.probe(options.signal);
  }
  // without a validator nothing tells whether the rest is of the same version as what was kept
  if (!file.tag && !(await keptOf(url, store))) await store?.clear();
  return { file, version: { size: file.size, from: placeOf(url, file.tag), tag: file.tag } };
}

async function openKept({ name, store }) {
  const version = await store?.whole();
  if (!version) throw new BridgeError('ModelFileError', `The model ${name} is not kept whole on this device.`);
  const fetchRange = async () => {
    throw new BridgeError('ModelFileError', `The model ${name} is damaged on this device.`);
  };
  return { file: { size: version.size, fetchRange, close() {} }, version };
}

function openPicked({ file: picked }) {
  const file = new PickedFile(picked);
  return { file, version: { size: file.size, from: `file ${picked.name}`, tag: file.tag } };
}

/** The store of a model's parts, or null and why: private windows have none. */
async function openStore(name, root) {
  try {
    return { store: await PartStore.open(name, root), notKept: '' };
  } catch (error) {
    return { store: null, notKept: error.name };
  }
}

/**
 * Opens a model by URL, as a picked file, or as it was kept by an earlier visit.
 * @param {object} model
 * @param {string} model.name under which parts are kept
 * @param {string} [model.url]
 * @param {File} [model.file]
 * @param {number} [model.size] bytes of the file where the registry knows it
 * @param {string[]} [model.parts] SHA-256 of each part of 16 MiB where the registry knows them
 * @param {boolean} [model.keep] keep parts for the next visit; of a picked file only where asked for
 * @param {object} [options]
 * @param {Signal | AbortSignal} [options.signal] ends reads and the load at any point
 * @param {(done: number, total: number, secondsLeft?: number) => void} [options.onProgress] bytes of the file
 * @returns {Promise<Source>}
 */
export async function openSource({ url, file: given, name, size, parts, keep }, options = {}) {
  const signal = Signal.from(options.signal);
  const picked = given instanceof Blob ? given : null; // the registry's entries have a name there
  const hashes = parts ?? [];
  const pinned = Boolean(size) && hashes.length === partCount(size);
  const { store, notKept } = (keep ?? !picked) ? await openStore(name, options.root) : { store: null, notKept: '' };
  const asked = { url, file: picked, name, size: size ?? 0, pinned, store, options: { ...options, signal } };
  const { file, version } = await (picked ? openPicked(asked) : url ? openUrl(asked) : openKept(asked));
  if (store) {
    store.version = version;
    await store.clear(partCount(version.size));
  }
  const source = new Source({
    size: version.size,
    fetchRange: (...range) => file.fetchRange(...range),
    hashes,
    store,
    name,
    signal,
    onProgress: options.onProgress,
    close: () => file.close(),
  });
  source.notKept = notKept;
  return source;
}
