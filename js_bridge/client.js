/**
 * The page's side: one class that starts the worker and turns its messages into promises and callbacks.
 * Answers are plain text; insert them as text, never as HTML.
 */
import { watchFrames } from './frame-monitor.js';
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

const NO_WEBGPU = {
  name: 'NoWebGPUError',
  message: 'This browser offers no WebGPU here.',
  remedy: 'Use a current Chrome, Edge, Firefox or Safari, and open the page over https or on localhost.',
};

const STOPPED = { name: 'StoppedError', message: 'Loading was stopped.', remedy: 'Load again.' };
const CLOSED = { name: 'StoppedError', message: 'The assistant was closed.', remedy: 'Load the model again.' };
const NO_MODEL = {
  name: 'UsageError',
  message: 'No model is named.',
  remedy: 'Give `model`: a short name, the URL of a GGUF file or a picked file.',
};

const QUESTION_OPTIONS = new Set([
  ...['page', 'text', 'system', 'selection', 'maxTokens', 'mode', 'window', 'budget', 'stop', 'reuse', 'sampling'],
  ...['frameBudget', 'onText', 'onStep', 'onProgress', 'signal'],
]);

/** Throws where an option has no meaning: a typo would else change nothing and say nothing. */
function checkOptions(options) {
  const unknown = Object.keys(options).find((name) => !QUESTION_OPTIONS.has(name));
  if (!unknown) return;
  const remedy = `The options are ${[...QUESTION_OPTIONS].join(', ')}.`;
  throw new PywebError({ name: 'UsageError', message: `There is no option ${unknown}.`, remedy });
}

const here = (path) => new URL(path, import.meta.url).href;

const absolute = (url) => new URL(url, document.baseURI).href;

/**
 * A model by short name (one that `models/index.json` beside the bridge lists), by URL, as a picked file, or described.
 * @returns {Promise<{name: string, url?: string, file?: File}>}
 */
async function described(model) {
  if (model instanceof File) return { name: model.name, file: model };
  if (typeof model === 'object') {
    const { file, ...rest } = model; // in the registry's entries a file name
    for (const name of ['url', 'tokenizer']) if (rest[name]) rest[name] = absolute(rest[name]);
    return file instanceof File ? { ...rest, file } : rest;
  }
  if (/[/.]/.test(model)) return { name: model.split('/').at(-1), url: absolute(model) };
  const index = here('../models/index.json');
  const reply = await fetch(index).catch(() => ({ ok: false }));
  const known = reply.ok ? await reply.json() : [];
  const found = known.find(({ name }) => name === model);
  if (found) return described({ ...found, url: new URL(found.url, index).href });
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
  #watched = new Map();
  #lastId = 0;
  #closed = null;
  /** What loading found: adapter, context, gpu_bytes, fetched, not_kept, notes, warning, calibration. */
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
   * @param {string | File | {name: string, url?: string, file?: File, size?: number, parts?: string[],
   *   tokenizer?: string} | {shape: string, tokenizer?: string}} options.model short name, URL or picked GGUF file;
   *   `tokenizer` is the URL of a `tokenizer.json` that takes the place of the file's own vocabulary; `shape` gives a
   *   real model's shape with random weights, which needs no download, for measurements
   * @param {number} [options.context] tokens of context; the model's own or 4096 where left out
   * @param {string} [options.kv] storage of keys and values: `f16` or `f32`
   * @param {string} [options.memory] what drafts may be copied from: `off`, `conversation` or `origin`
   * @param {(p: {stage: string, done: number, total: number, note: string, left?: number}) => void}
   *   [options.onProgress] `left`: seconds that the rest of the file will take
   * @param {AbortSignal} [options.signal] ends the load at any point
   * @param {string} [options.runtime] URL of the folder of runtime parts, with its closing slash
   * @param {string} [options.worker] URL of worker.js
   * @returns {Promise<Assistant>}
   */
  static async load({ model, context, kv, memory, onProgress, signal, runtime, worker } = {}) {
    if (!model) throw new PywebError(NO_MODEL);
    if (!navigator.gpu) throw new PywebError(NO_WEBGPU); // before megabytes are fetched for nothing
    const assistant = new Assistant(worker ?? here('./worker.js'), onProgress);
    const abort = () => assistant.#finish(STOPPED);
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
   * Answers a question that stands alone, about this page, another page or a text.
   * @param {string} question
   * @param {object} [options]
   * @param {{html: string, url: string, title: string, selection?: string} | null} [options.page] a snapshot; of this
   *   document where left out, of none where null
   * @param {string} [options.text] a text in place of a page
   * @param {string} [options.system] a system text
   * @param {number} [options.maxTokens]
   * @param {string} [options.mode] `greedy`, `loop`, `fixed:N` or `adaptive`
   * @param {number} [options.window] steps between two read-backs
   * @param {number} [options.budget] tokens of page text
   * @param {number} [options.frameBudget] milliseconds that a frame of the page may take, such as 16.7: where frames come
   *   late the model leaves the GPU to them; all of the GPU where left out
   * @param {string[]} [options.stop] strings that end the reply
   * @param {boolean} [options.reuse] false computes the whole prompt anew
   * @param {object} [options.sampling] temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty,
   *   frequency_penalty, logit_bias (pairs of token and bias), seed; the likeliest token where left out
   * @param {(text: string) => void} [options.onText] called with each new piece of the answer
   * @param {(step: object) => void} [options.onStep] called after each step with its record (tokens, match length,
   *   width), the tokens it emitted and the tree that the next step verifies; windows are one step long then. Before
   *   the first step, where it carries drafts, with its tree and no record
   * @param {(p: object) => void} [options.onProgress]
   * @param {AbortSignal} [options.signal] stops the reply
   * @returns {Promise<object>} answer, ids, times and counts
   */
  async ask(question, options = {}) {
    return this.#ask(question, material(options), options);
  }

  /**
   * Begins a conversation about this page, another page or a text: follow-up questions know the earlier ones, and only
   * what is new is computed.
   * @param {object} [options] page, text and system as in `ask`
   * @returns {Chat}
   */
  chat(options = {}) {
    const opened = this.request('chat', material(options));
    opened.catch(() => {}); // the first question hears of it
    return new Chat(opened, (question, params, rest) => this.#ask(question, params, rest), (chat) =>
      this.request('end_chat', { chat }),
    );
  }

  #ask(question, params, options) {
    checkOptions(options);
    const { maxTokens, mode, window, budget, stop, reuse, sampling, selection, onStep, ...handlers } = options;
    const { frameBudget } = options;
    const rest = { max_tokens: maxTokens, mode, window, budget, stop, reuse, sampling, selection };
    const sent = { question, ...params, ...rest, frame_budget: frameBudget, steps: Boolean(onStep) };
    const unwatch = frameBudget > 0 ? this.#watch(frameBudget) : () => {};
    return this.request('ask', sent, { ...handlers, onStep }).finally(unwatch);
  }

  /** Tells the worker of the page's frames until the function that it gives is called; once for replies that wait. */
  #watch(budget) {
    const watched = this.#watched.get(budget) ?? { replies: 0 };
    const tell = (news) => this.#post('frames', { frame_budget: budget, ...news });
    if (!watched.replies++) watched.stop = watchFrames(budget, tell);
    this.#watched.set(budget, watched);
    return () => --watched.replies || watched.stop();
  }

  /** Erases the memory of earlier replies, on the GPU and on this device. */
  forget() {
    return this.request('forget', {});
  }

  /** Compiles, checks and, on a first visit, measures what a mode needs, so that no question waits for it. */
  prepare(mode = 'adaptive') {
    return this.request('prepare', { mode });
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

  /**
   * Measures the model on this device (pyweb/bench): the result of all parts so far, with its tables.
   * @param {string[]} parts of `widths`, `modes`, `prefill`, `roles`, `host`
   * @param {object} [options]
   * @param {object} [options.settings] runs, tokens, widths, modes, lengths, role_widths, host_modes, position, steps,
   *   batch
   * @param {{id: string, instruction: string, page: string}[]} [options.prompts] in place of the built-in tasks
   * @param {object} [options.measured] a result to which the parts are added
   * @param {boolean} [options.forced] every reply has its full length, as random weights need it
   * @param {(p: object) => void} [options.onProgress] `note` says what is being measured
   * @param {AbortSignal} [options.signal] stops between two measurements
   */
  bench(parts, { settings, prompts, measured, forced, onProgress, signal } = {}) {
    return this.request('bench', { parts, settings, prompts, measured, forced }, { onProgress, signal });
  }

  /**
   * What a model file holds and whether it runs: sizes, weights, tokenizer, memory; nothing is loaded.
   * @param {string | File | object} model as in `load`
   */
  async inspect(model, context) {
    return this.request('inspect', { model: await described(model), context });
  }

  /** Stops whatever is being answered or waits for its turn. */
  stop() {
    for (const id of this.#pending.keys()) if (id) this.#post('stop', { id });
  }

  /** Ends the worker and gives the GPU's memory back. */
  close() {
    this.#finish(CLOSED);
  }

  #finish(reason) {
    this.#worker.terminate();
    this.#closed ??= reason;
    this.#end(reason);
  }

  /**
   * Sends one message to the worker; the promise ends with its `done` or `error`.
   * @param {string} method
   * @param {object} params
   * @param {{onText?: Function, onStep?: Function, onProgress?: Function, signal?: AbortSignal}} [handlers]
   */
  request(method, params, { onText, onStep, onProgress, signal } = {}) {
    if (this.#closed) return Promise.reject(new PywebError(this.#closed));
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

/** The part of `ask`'s options that says what is asked about. */
function material({ page, text, system }) {
  return { ...(text === undefined ? { page: page === undefined ? snapshot(document) : page } : { text }), system };
}

/** A conversation; made by `Assistant.chat`. */
export class Chat {
  #opened;
  #ask;
  #end;

  /** Use `Assistant.chat`. */
  constructor(opened, ask, end) {
    this.#opened = opened;
    this.#ask = ask;
    this.#end = end;
  }

  /**
   * Answers the next question; options are those of `Assistant.ask` but for page, text and system, and `selection`:
   * what the reader has selected on the page. A question that fails leaves the conversation as it was.
   */
  async ask(question, options = {}) {
    const { chat } = await this.#opened;
    return this.#ask(question, { chat }, options);
  }

  /** Forgets the conversation. */
  async close() {
    const { chat } = await this.#opened;
    await this.#end(chat);
  }
}
