/** What the benchmark page measures, without its form: loading, visits, the worker's parts, frames. */
import { Assistant, PywebError } from './js_bridge/client.js';

/** Parts by name, in the order in which they are measured, and what they say of themselves. */
export const PARTS = {
  visits: 'Loading, in a first and a second visit: the page reloads itself',
  widths: 'A step by its width, T(N)',
  modes: 'Decoding by mode: token by token, in windows, with guesses',
  prefill: 'Prefill by prompt length, and the first token',
  roles: 'GPU time by kernel role, beside what the device can do at best',
  host: 'Host time of a window: Python, bridge, browser',
  cuts: 'Whether other cuts of the kernels would be faster here: takes minutes',
  frames: 'Frames of a page that draws while the model writes',
};

/** What ends each part of a load: progress by stage and note, or by its begin and end. */
const STAGES = [
  ['worker', 'runtime Pyodide'],
  ['Pyodide with its standard library', 'runtime pyweb'],
  ['pyweb’s own modules', 'runtime end'],
  ['device, header, tokenizer, plan', 'model begin'],
  ['weights', 'model end'],
  ['tables', 'kernels begin'],
  ['kernels and their self-check', 'kernels end'],
  ['all widths, calibration', 'prepared'],
];

/**
 * A benchmark as the form and the address describe it; plain data.
 * @typedef {object} Plan
 * @property {{shape: string} | {name: string, url: string}} model
 * @property {string[]} parts of `PARTS`
 * @property {object} settings of `Assistant.bench`
 * @property {string} [prompts] URL of JSON lines {id, instruction, page}
 * @property {number} [first] number of the first of them @property {number} [count] how many
 * @property {number} [context] @property {string} [kv]
 * @property {number[]} [windows] @property {number} [seconds] of `measureFrames`
 * @property {number} [spin] frames on a GPU that does so many microseconds of idle work behind every dispatch
 */

/** Seconds of each stage out of milliseconds by mark, what was fetched, and whether an earlier visit had calibrated. */
function visitOf(marks, start, { fetched, calibration }) {
  const seconds = {};
  let before = start;
  for (const [stage, end] of STAGES) {
    if (marks[end] === undefined) continue;
    seconds[stage] = Math.max(0, marks[end] - before) / 1000;
    before = Math.max(before, marks[end]);
  }
  return { seconds, fetched, calibration: calibration ? 'kept' : 'measured' };
}

/** Loads the plan's model and, where visits are measured, all that `adaptive` needs. */
async function open({ model, context, kv, parts }, { onProgress, signal }) {
  const start = performance.now();
  const marks = {};
  const mark = (name) => (marks[name] ??= performance.now());
  const watch = (progress) => {
    const { stage, done, total, note } = progress;
    if (note) mark(`${stage} ${note}`);
    mark(`${stage} begin`);
    if (done >= total) mark(`${stage} end`);
    onProgress(progress);
  };
  const assistant = await Assistant.load({ model, context, kv, memory: 'off', onProgress: watch, signal });
  if (parts.includes('visits')) {
    onProgress({ stage: 'bench', note: 'calibration' });
    await assistant.prepare('adaptive');
    mark('prepared');
  }
  return { assistant, visit: visitOf(marks, start, assistant.loaded) };
}

/** The rows that a URL of JSON lines holds; null where there is none. */
async function promptsOf({ prompts, first = 0, count }) {
  if (!prompts) return null;
  const failed = (why) => {
    const remedy = 'Give the URL of JSON lines with id, instruction and page.';
    const message = `The prompts ${prompts} could not be read: ${why}.`;
    return new PywebError({ name: 'NetworkError', message, remedy });
  };
  const reply = await fetch(prompts).catch((error) => ({ ok: false, status: error.message }));
  if (!reply.ok) throw failed(reply.status);
  try {
    const rows = (await reply.text()).split('\n').filter((line) => line.trim()).map((line) => JSON.parse(line));
    return rows.slice(first, count === undefined ? undefined : first + count);
  } catch (error) {
    throw failed(error.message);
  }
}

function checkParts(parts) {
  const unknown = parts.find((name) => !(name in PARTS));
  if (parts.length && !unknown) return;
  const message = unknown ? `The benchmark has no part ${unknown}.` : 'No part is chosen.';
  throw new PywebError({ name: 'UsageError', message, remedy: `Choose among ${Object.keys(PARTS).join(', ')}.` });
}

async function frames(assistant, { model, context, kv, settings, spin, windows, seconds }, handlers) {
  const { measureFrames, measureSlowedFrames } = await import('./frames.js');
  const options = { tokens: settings.tokens, windows, seconds, ...handlers };
  if (!spin) return measureFrames(assistant, options);
  return measureSlowedFrames({ model, context, kv, ...handlers }, spin, options);
}

/**
 * Measures a plan; the result grows part by part.
 * @param {Plan} plan
 * @param {object[]} visits those that earlier loads of this page measured
 * @param {{onProgress: Function, onResult: (result: object) => void, signal: AbortSignal}} handlers
 * @returns {Promise<object[] | null>} the visits where the page has to be loaded again first, else null
 */
export async function measure(plan, visits, { onProgress, onResult, signal }) {
  checkParts(plan.parts);
  const handlers = { onProgress, signal };
  const rows = await promptsOf(plan);
  const { assistant, visit } = await open(plan, handlers);
  try {
    const { settings } = plan;
    const forced = Boolean(plan.model.shape);
    const name = plan.model.name ?? `shape:${plan.model.shape}`;
    let result = { name, user_agent: navigator.userAgent, date: new Date().toISOString() };
    const bench = async (parts) => {
      const options = { settings, prompts: rows ?? undefined, measured: result, forced, ...handlers };
      onResult((result = await assistant.bench(parts, options)));
    };
    // Settings that make no sense show before the page is loaded again.
    if (plan.parts.includes('visits')) {
      result.visits = [...visits, visit];
      await bench([]);
      if (result.visits.length < 2) return result.visits;
    }
    for (const part of Object.keys(PARTS).filter((name) => plan.parts.includes(name))) {
      if (part === 'visits') continue;
      if (part === 'frames') result.frames = await frames(assistant, plan, handlers);
      await bench(part === 'frames' ? [] : [part]);
    }
    return null;
  } finally {
    assistant.close();
  }
}
