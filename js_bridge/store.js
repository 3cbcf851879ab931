/** A key-value store in IndexedDB, per origin: what is measured once and what is remembered between visits. */

const NAME = 'pyweb';
const TABLE = 'values';

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function table(mode) {
  const opening = indexedDB.open(NAME, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(TABLE);
  const database = await settled(opening);
  return { database, store: database.transaction(TABLE, mode).objectStore(TABLE) };
}

const committed = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });

/** Runs one request to its commit; the connection doesn't outlive it, so that no tab blocks another. */
async function once(mode, ask) {
  const { database, store } = await table(mode);
  try {
    const done = committed(store.transaction);
    const [result] = await Promise.all([settled(ask(store)), done]);
    return result;
  } finally {
    database.close();
  }
}

/** @returns {Promise<string | undefined>} the text kept under `key` */
export const get = (key) => once('readonly', (store) => store.get(key));

/** @param {string} key @param {string} text */
export const put = (key, text) => once('readwrite', (store) => store.put(text, key));

/** Removes every key that begins with `prefix`. */
export const remove = (prefix) =>
  once('readwrite', (store) => store.delete(IDBKeyRange.bound(prefix, `${prefix}\uffff`)));
