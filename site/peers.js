/**
 * Times one engine, driven by the form or by its query string:
 *   engine   pyweb, wllama, transformers or webllm
 *   shape    a model of random weights (pyweb, wllama)
 *   model    short name or URL of a GGUF file (pyweb, wllama)
 *   onnx, dtypes  folder of an ONNX model on this site, and a comma list of q4f16 and q4, which it holds (transformers)
 *   lib, weights  URLs of a model library and of the weights' folder (webllm)
 *   mode     of pyweb's decoding (loop)
 *   prompt, tokens   tokens of prompt and reply (838, 128)
 *   runs     that count (5)
 *   auto     1: begins at once
 *   report   URL that gets the result by POST
 * The site's `peers.json` says which engines it carries. The state is in `globalThis.benchmark` too:
 * `progress`, a text, and at the end `result`, which has an `error` where something went wrong.
 */
import { randomBlob } from './js_bridge/random.js';
import { measure } from './peers/measure.js';
import { complain, element, Meter } from './widgets.js';

const query = new URLSearchParams(location.search);
const part = (id) => document.getElementById(id);
const meter = new Meter();
const state = (globalThis.benchmark = { progress: '', result: null }); // for what drives the page from outside
let carried = { engines: { pyweb: '' }, shapes: [] };
const ROOM = 64; // of the context, for a template and for prompts that are a little longer

function say(what) {
  state.progress = what;
  meter.say(what);
}

const mistake = (message, remedy) => Object.assign(new Error(message), { name: 'UsageError', remedy });

async function got(url) {
  const reply = await fetch(url);
  if (reply.ok) return reply;
  throw mistake(`${url} can't be fetched: ${reply.status}.`, 'Write the site with `pyweb bench --folder`.');
}

const json = async (url) => (await got(url)).json();

/** What WebGPU runs on; a browser that just started may give none the first time. */
async function adapter() {
  let found = null;
  for (let tries = 0; navigator.gpu && !found && tries < 6; tries++) {
    if (tries) await new Promise((resolve) => setTimeout(resolve, 500));
    found = await navigator.gpu.requestAdapter();
  }
  if (!found) return { name: 'none', f16: false };
  const { vendor, architecture } = found.info;
  return { name: `${vendor} ${architecture}`.trim(), f16: found.features.has('shader-f16') };
}

/** The GGUF file of a shape or of a URL. */
async function blob({ shape, model }) {
  if (!shape) return (await got(model)).blob();
  const recipe = await json(`shape-${shape}.json`);
  const header = await (await got(`shape-${shape}.header`)).arrayBuffer();
  return randomBlob({ ...recipe, header: new Uint8Array(header) });
}

// What each engine takes as its model.
const TAKES = { pyweb: ['shape', 'model'], wllama: ['shape', 'model'], transformers: ['onnx'], webllm: ['lib'] };

/** What the query or the form asks for. */
function wanted() {
  const options = chosen();
  const takes = TAKES[options.engine];
  if (!takes) throw mistake(`There is no engine ${options.engine}.`, `The engines are ${Object.keys(TAKES).join(', ')}.`);
  if (takes.some((kind) => options[kind])) return options;
  throw mistake(`${options.engine} can't take this model.`, `It takes ${takes.join(' or ')}.`);
}

function chosen() {
  const { shape, model, onnx } = Object.fromEntries(new URLSearchParams(part('model').value));
  const number = (name) => Number(part(name).value);
  return {
    engine: part('engine').value,
    mode: part('mode').value,
    ...{ shape, model, onnx, dtypes: query.get('dtypes')?.split(',') ?? carried.onnx?.dtypes ?? ['q4f16'] },
    ...{ lib: query.get('lib'), weights: query.get('weights') },
    ...{ promptTokens: number('prompt'), tokens: number('tokens'), runs: number('runs') },
  };
}

function table({ engine, version, backend, mode, promptTokens, tokens, firstToken, decode, notes }) {
  const digits = (number) => (number >= 100 ? number.toFixed(0) : number.toPrecision(3));
  const spread = ({ median, min, max }) => `${digits(median)} (${digits(min)}–${digits(max)})`;
  const name = engine === 'pyweb' ? `pyweb, ${mode}` : engine;
  return {
    title: `${name} ${version}`.trim(),
    columns: ['engine', 'runs on', 'prompt', 'reply', 'first token, ms', 'ms a token'],
    rows: [[name, backend, String(promptTokens), String(tokens), spread(firstToken), spread(decode)]],
    note: notes.join(' '),
  };
}

function show({ title, columns, rows, note }) {
  const cells = (kind, scope, texts) => texts.map((text) => element(kind, scope, text));
  const head = element('tr', {}, ...cells('th', { scope: 'col' }, columns));
  const body = rows.map((row) => element('tr', {}, ...cells('td', {}, row)));
  const made = element('table', {}, element('caption', {}, title), element('thead', {}, head), element('tbody', {}, ...body));
  part('results').append(made, element('p', {}, note));
}

async function run() {
  const options = wanted();
  const context = options.promptTokens + options.tokens + ROOM;
  say('Loading the engine');
  const { open } = await import(`./peers/${options.engine}.js`);
  const found = await adapter();
  const engine = await open({ ...options, f16: found.f16, context, say, blob: () => blob(options) });
  try {
    const measured = await measure(engine, options, say);
    const version = carried.engines[options.engine] ?? '';
    const result = { userAgent: navigator.userAgent, adapter: found, ...options, ...measured, version };
    return { ...result, tables: [table(result)] };
  } finally {
    engine.close();
  }
}

async function start() {
  part('start').disabled = true;
  part('alert').replaceChildren();
  let result;
  try {
    result = await run();
    result.tables.forEach(show);
  } catch (error) {
    const { name = 'Error', message = String(error), remedy = '' } = error;
    result = { error: { name, message, remedy } };
    complain(part('alert'), result.error, () => location.reload());
  }
  meter.hide();
  part('start').disabled = false;
  if (query.has('report')) await fetch(query.get('report'), { method: 'POST', body: JSON.stringify(result) });
  state.result = result;
}

/** Offers what the site carries; what the query names comes first. */
async function offer() {
  carried = { ...carried, ...(await json('peers.json').catch(() => ({}))) };
  part('about').hidden = Object.keys(carried.engines).length > 1;
  const models = await json('models/index.json').catch(() => []);
  const option = (value, text, chosen) => element('option', { value, ...(chosen ? { selected: '' } : {}) }, text);
  // An engine that the site lacks must fail, not be another one.
  const engines = new Set([...Object.keys(carried.engines), query.get('engine') ?? 'pyweb']);
  for (const name of engines) part('engine').append(option(name, name, name === query.get('engine')));
  const choices = [
    ...carried.shapes.map((shape) => ['shape', shape, `${shape}, random weights`]),
    ...models.map(({ name, url }) => ['model', new URL(`models/${url}`, location.href).href, name]),
    ...(carried.onnx ? [['onnx', carried.onnx.path, `${carried.onnx.name}, ONNX`]] : []),
  ];
  for (const kind of ['shape', 'model', 'onnx']) {
    const named = query.get(kind);
    if (named && !choices.some((choice) => choice[0] === kind && choice.includes(named))) choices.unshift([kind, named, named]);
  }
  for (const [kind, value, text] of choices) {
    part('model').append(option(String(new URLSearchParams({ [kind]: value })), text, [value, text].includes(query.get(kind))));
  }
  for (const name of ['mode', 'prompt', 'tokens', 'runs']) if (query.has(name)) part(name).value = query.get(name);
}

part('progress').replaceWith(meter.element);
await offer();
part('form').addEventListener('submit', (event) => {
  event.preventDefault();
  start();
});
if (query.get('auto')) start();
