/**
 * Hugging Face's `tokenizers` as wasm (npm `@mlc-ai/web-tokenizers`), opened from a tokenizer.json.
 * Works in a module worker, in a window and in node.
 */

let library = null;

/** The package is a UMD file: imported as a module it exports nothing and sets `globalThis.tokenizers`. */
function loadLibrary(moduleUrl) {
  library ??= standInForCommonJs(moduleUrl).then(() => import(moduleUrl)).then(() => globalThis.tokenizers);
  library.catch(() => { library = null; });
  return library;
}

/** In node the package expects CommonJS names that an ES module doesn't have. */
async function standInForCommonJs(moduleUrl) {
  if (!globalThis.process?.versions?.node) return;
  const { createRequire } = await import('node:module');
  globalThis.require ??= createRequire(moduleUrl);
  globalThis.__filename ??= new URL(moduleUrl).pathname;
  globalThis.__dirname ??= new URL('.', moduleUrl).pathname;
}

/**
 * @param {string} moduleUrl absolute URL of the package's `lib/index.js`
 * @param {string} jsonText content of a tokenizer.json
 * @returns {Promise<{encode(text: string): Int32Array, decode(ids: ArrayLike<number>): string, close(): void}>}
 *   `encode` adds no tokens, `decode` leaves none out; `close` frees the wasm memory.
 */
export async function openTokenizer(moduleUrl, jsonText) {
  const { Tokenizer } = await loadLibrary(moduleUrl);
  const tokenizer = await Tokenizer.fromJSON(new TextEncoder().encode(jsonText).buffer);
  return {
    encode: (text) => tokenizer.encode(text),
    decode: (ids) => tokenizer.decode(Int32Array.from(ids)),
    close: () => tokenizer.dispose(),
  };
}
