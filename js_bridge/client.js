/**
 * The page's side: one class that starts the worker and turns its messages into promises and callbacks.
 * Answers are plain text; insert them as text, never as HTML.
 */
import { snapshot } from './snapshot.js';

/** An error of pyweb: `name` is the Python class name, `remedy` what the visitor can do. */
export class PywebError extends Error {
  /** @param {{name: string, message: string, remedy?: string}} parts */
  constructor({ name, message, remedy = '' }) {
    super(message);
    this.name = name;
    this.remedy = remedy;
  }
}

const here = (path) => new URL(path, import.meta.url).href;

/**
 * A model by short name (one that `models/index.json` beside the bridge lists), by URL, or described.
 * @returns {Promise<{name: string, url: string}>}
 */
async function described(model) {
  if (typeof model === 'object') return { ...model, url: new URL(model.url, document.baseURI).href };
  if (/[/.]/.test(model)) return { name: model.split('/').at(-1), url: new URL(model, document.baseURI).href };
  const index = here('../models/index.json');
  const reply = await fetch(index).catch(() => ({ ok: false }));
  const known = reply.ok ? await reply.json() : [];
  const found = known.find(({ name }) => name === model);
  if (found) return { ...found, url: new URL(found.url, index).href };
  throw new PywebError({
    name: 'UnknownModelError',
    message: `This site offers no model ${model}.`,
    remedy: 'Give the URL of a GGUF file.',
  });
}

/** A model in a worker that answers questions. */
export class Assistant {
  #worker;
  #pending = new Map();
  #lastId = 0;
  /** What loading found: context, gpu_bytes, fetched, not_kept, warning, calibration. */
  loaded = null;

  /** Use `Assistant.load`. */
  constructor(workerUrl, onProgress) {
    this.#pending.set(0, { onProgress });
    this.#worker = new Worker(workerUrl, { type: 'module', name: 'pyweb' });
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    this.#worker.onerror = (event) => {
      const message = event.message || 'its script could not be loaded';
      this.#end({ name: 'NetworkError', message: `The worker failed: ${message}.`, remedy: 'Reload the page.' });
    };
  }

  /**
   * Starts the runtime and loads a model.
   * @param {object} options
   * @param {string | {name: string, url: string, size?: number, sha256?: string}} options.model
   * @param {number} [options.context] tokens of context; the model's own or 4096 where left out
   * @param {string} [options.kv] storage of keys and values: `f16` or `f32`
   * @param {string} [options.memory] what drafts may be copied from: `off`, `conversation` or `origin`
   * @param {(p: {stage: string, done: number, total: number, note: string}) => void} [options.onProgress]
   * @param {AbortSignal} [options.signal] ends the load
   * @param {string} [options.runtime] URL of the folder of runtime parts, with its closing slash
   * @param {string} [options.worker] URL of worker.js
   * @returns {Promise<Assistant>}
   */
  static async load({ model, context, kv, memory, onProgress, signal, runtime, worker }) {
    const assistant = new Assistant(worker ?? here('./worker.js'), onProgress);
    const abort = () => assistant.close();
    signal?.addEventListener('abort', abort);
    try {
      signal?.throwIfAborted();
      const booted = assistant.request('boot', { runtime: runtime ?? here('../runtime/') });
      booted.catch(() => {}); // awaited below; a model that isn't found ends the load first
      const params = { model: await described(model), context, kv, memory };
      await booted;
      assistant.loaded = await assistant.request('load', params, { onProgress });
      return assistant;
    } catch (error) {
      assistant.close();
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /**
   * Answers a question about this page, another page or a text.
   * @param {string} question
   * @param {object} [options]
   * @param {{html: string, url: string, title: string}} [options.page] a snapshot; of this document where left out
   * @param {string} [options.text] a text in place of a page
   * @param {number} [options.maxTokens]
   * @param {string} [options.mode] `greedy`, `loop`, `fixed:N` or `adaptive`
   * @param {number} [options.window] steps between two read-backs
   * @param {number} [options.budget] tokens of page text
   * @param {object} [options.sampling] temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty,
   *   frequency_penalty, logit_bias (pairs of token and bias), seed; the likeliest token where left out
   * @param {(text: string) => void} [options.onText] called with each new piece of the answer
   * @param {(step: object) => void} [options.onStep] called after each step with its record (tokens, match length,
   *   width), the tokens it emitted and the tree that the next step verifies; windows are one step long then
   * @param {(p: object) => void} [options.onProgress]
   * @param {AbortSignal} [options.signal] stops the reply
   * @returns {Promise<object>} answer, ids, times and counts
   */
  ask(question, options = {}) {
    const { page, text, maxTokens, mode, window, budget, sampling, onStep, ...handlers } = options;
    const material = text === undefined ? { page: page ?? snapshot(document) } : { text };
    const rest = { max_tokens: maxTokens, mode, window, budget, sampling, steps: Boolean(onStep) };
    return this.request('ask', { question, ...material, ...rest }, { ...handlers, onStep });
  }

  /** Erases the memory of earlier replies, on the GPU and on this device. */
  forget() {
    return this.request('forget', {});
  }

  /** Measures again what steps cost on this device. */
  recalibrate() {
    return this.request('recalibrate', {});
  }

  /** Perplexity of a text's first `tokens` tokens. */
  perplexity(text, tokens, handlers) {
    return this.request('perplexity', { text, tokens }, handlers);
  }

  /** Compares steps of several widths with single steps, bit by bit. */
  check(widths, handlers) {
    return this.request('check', { widths }, handlers);
  }

  /** Stops whatever is being answered. */
  stop() {
    for (const id of this.#pending.keys()) if (id) this.#post('stop', { id });
  }

  /** Ends the worker and gives the GPU's memory back. */
  close() {
    this.#worker.terminate();
    this.#end({ name: 'StoppedError', message: 'The assistant was closed.' });
  }

  /**
   * Sends one message to the worker; the promise ends with its `done` or `error`.
   * @param {string} method
   * @param {object} params
   * @param {{onText?: Function, onStep?: Function, onProgress?: Function, signal?: AbortSignal}} [handlers]
   */
  request(method, params, { onText, onStep, onProgress, signal } = {}) {
    const id = this.#post(method, params);
    const stop = () => this.#post('stop', { id });
    const ended = new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onText, onStep, onProgress });
    });
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop);
    return ended.finally(() => signal?.removeEventListener('abort', stop));
  }

  #post(method, params) {
    const id = ++this.#lastId;
    this.#worker.postMessage({ id, method, params });
    return id;
  }

  #receive({ id, event, ...rest }) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (event === 'progress') pending.onProgress?.(rest);
    else if (event === 'text') pending.onText?.(rest.text);
    else if (event === 'step') pending.onStep?.(rest);
    else {
      this.#pending.delete(id);
      if (event === 'done') pending.resolve(rest.result);
      else pending.reject(new PywebError(rest));
    }
  }

  #end(error) {
    for (const { reject } of this.#pending.values()) reject?.(new PywebError(error));
    this.#pending.clear();
  }
}
