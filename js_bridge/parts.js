/**
 * Parts of model files in the browser's own storage (OPFS): a folder a model, a file a part, which says in front of the
 * bytes what they are and what their SHA-256 is. So no other file has to agree with it when a write breaks off, and two
 * tabs can't spoil each other's work.
 *
 * A worker writes through sync access handles. A window has none and writes through streams, which copy.
 */

/** Bytes of a part. */
export const PART = 16 * 1024 * 1024;

const NOTE = 4096; // bytes of the note in front of a part

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** @param {Uint8Array} bytes */
export const sha256 = async (bytes) => hex(await crypto.subtle.digest('SHA-256', bytes));

/** Bytes of part `index` of a file of `size` bytes. */
export const partLength = (size, index) => Math.min(PART, size - index * PART);

export const partCount = (size) => Math.ceil(size / PART);

/** Up to `length` first bytes of a file; another tab that writes it makes both ways fail. */
async function readFile(handle, length) {
  if (handle.createSyncAccessHandle) {
    let access;
    try {
      access = await handle.createSyncAccessHandle({ mode: 'read-only' });
      const bytes = new Uint8Array(Math.min(length, access.getSize()));
      return bytes.subarray(0, access.read(bytes, { at: 0 }));
    } catch {
      // another tab reads or writes it
    } finally {
      access?.close();
    }
  }
  return new Uint8Array(await (await handle.getFile()).slice(0, length).arrayBuffer());
}

async function writeSync(handle, pieces) {
  const access = await handle.createSyncAccessHandle();
  try {
    let at = 0;
    for (const piece of pieces) {
      const written = access.write(piece, { at });
      if (written !== piece.length) throw new DOMException('The disk is full.', 'QuotaExceededError');
      at += written;
    }
    access.truncate(at);
    access.flush();
  } finally {
    access.close();
  }
}

async function writeStream(handle, pieces) {
  const stream = await handle.createWritable();
  try {
    // Room is asked for first: of bytes that find none Chromium says either QuotaExceededError or AbortError.
    await stream.truncate(pieces.reduce((sum, { length }) => sum + length, 0));
    for (const piece of pieces) await stream.write(piece);
    await stream.close();
  } catch (error) {
    await stream.abort().catch(() => {});
    throw error;
  }
}

/**
 * What a file is: two loads share parts where all of it is the same.
 * @typedef {{size: number, from: string, tag: string}} Version
 */

/** The kept parts of one model. */
export class PartStore {
  /** @type {Version} */
  version = { size: 0, from: '', tag: '' };

  /** @param {string} name of the model @param {FileSystemDirectoryHandle} [root] of the storage */
  static async open(name, root) {
    root ??= await navigator.storage.getDirectory();
    const models = await root.getDirectoryHandle('models', { create: true });
    const store = new PartStore();
    store.folder = await models.getDirectoryHandle(name.replace(/[^\w.-]/g, '_'), { create: true });
    return store;
  }

  /** The note and up to `length` bytes of a part; nulls where there is none or it is damaged. */
  async #read(index, length) {
    try {
      const bytes = await readFile(await this.folder.getFileHandle(String(index)), NOTE + length);
      const note = JSON.parse(new TextDecoder().decode(bytes.subarray(0, NOTE)));
      if (note.part !== index || note.partSize !== PART) throw new TypeError('This is another part.');
      return { note, bytes: bytes.subarray(NOTE) };
    } catch {
      return { note: null, bytes: null };
    }
  }

  #fits(note, hash) {
    const { size, from, tag } = this.version;
    if (note?.size !== size) return false;
    return hash ? note.sha256 === hash : note.from === from && note.tag === tag;
  }

  /** A part whose bytes are right, or null. @param {string} [hash] its SHA-256 where the registry has it */
  async read(index, hash) {
    const length = partLength(this.version.size, index);
    const { note, bytes } = await this.#read(index, length);
    if (!this.#fits(note, hash) || bytes.length !== length) return null;
    return (await sha256(bytes)) === note.sha256 ? bytes : null;
  }

  /**
   * Keeps a part. What breaks off half-way does not have the SHA-256 that its note says.
   * @throws {DOMException} QuotaExceededError of a full disk, NoModificationAllowedError where another tab has the part
   */
  async write(index, bytes, hash) {
    const note = JSON.stringify({ ...this.version, part: index, partSize: PART, sha256: hash });
    const encoded = new TextEncoder().encode(note.padEnd(NOTE));
    if (encoded.length !== NOTE) throw new DOMException('The address is too long.', 'NotSupportedError');
    const handle = await this.folder.getFileHandle(String(index), { create: true });
    if (!handle.createSyncAccessHandle && !handle.createWritable) {
      throw new DOMException('This browser writes no files here.', 'NotSupportedError');
    }
    try {
      await (handle.createSyncAccessHandle ? writeSync : writeStream)(handle, [encoded, bytes]);
    } catch (error) {
      if (error.name === 'QuotaExceededError') await this.#remove(index);
      throw error;
    }
  }

  /** The version whose parts are all there, or null; their bytes are checked when they are read. */
  async whole() {
    const { note } = await this.#read(0, 0);
    if (!(note?.size > 0)) return null;
    const { size, from, tag } = note;
    for (let index = 1; index < partCount(size); index++) {
      const { note: other } = await this.#read(index, 0);
      if (other?.size !== size || other.from !== from || other.tag !== tag) return null;
    }
    return { size, from, tag };
  }

  /** Removes the parts from number `first` on: those of a longer version, or all. */
  async clear(first = 0) {
    const names = [];
    for await (const name of this.folder.keys()) names.push(name);
    for (const name of names) if (Number(name) >= first) await this.#remove(name);
  }

  async #remove(name) {
    await this.folder.removeEntry(String(name)).catch(() => {}); // another tab may hold it
  }
}
