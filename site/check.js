/**
 * The exactness page, driven by its query string:
 *   model    short name or URL (smollm2-135m-instruct)
 *   kv       storage of keys and values: f16, f32 (f16)
 *   memory   what drafts may be copied from: off, conversation, origin (off)
 *   widths   comma list to compare with width 1 (2,4,8,16,32); empty: none
 *   prompts  URL of JSON lines {id, instruction, page}: each is answered in every mode (three short ones of the page's
 *            own); empty: none
 *   first, count   which of them, so that a run can go on where another ended (0, all)
 *   modes    comma list; the ids of all must equal the first's (greedy,loop)
 *   follow_ups   further questions of each conversation; the first mode prefills each prompt whole, the others reuse (0)
 *   seeds    comma list: the first `sampled` prompts are answered again with each seed, at temperature 0.8, top_p 0.95
 *   sampled  how many (0)
 *   tokens   tokens of a reply (64; 12 for the three short prompts)
 *   text, text_tokens   URL of a text and a comma list of token counts: its perplexity
 *   drafting   1: what drafting adds to a step, by the memory's size
 *   report   URL that gets the result by POST
 */
import { Assistant } from './js_bridge/client.js';
import { complain, element, Meter } from './widgets.js';

const SHORT_TOKENS = 12;
const SHORT_PROMPTS = [
  { id: 'lamp', instruction: 'Who lit the lamp?', page: 'Every evening the keeper climbed up and lit the lamp.' },
  { id: 'colours', instruction: 'Repeat the list.', page: 'red, green, blue, red, green, blue, red, green, blue' },
  { id: 'boats', instruction: 'How many boats came home?', page: 'Eleven boats left in the storm. All came home.' },
];

const FOLLOW_UPS = ['Say more about that.', 'And in one sentence?', 'Why?'];
const query = new URLSearchParams(location.search);
const list = (name, otherwise) => (query.get(name) ?? otherwise).split(',').filter(Boolean);
const result = { userAgent: navigator.userAgent, prompts: [], perplexity: [] };
const part = (id) => document.getElementById(id);
const meter = new Meter();

function row(what, value) {
  const label = what[0].toUpperCase() + what.slice(1);
  part('rows').append(element('tr', {}, element('th', { scope: 'row' }, label), element('td', {}, value)));
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? 0;
const read = async (url) => (await fetch(url)).text();

async function compareWidths(assistant) {
  const widths = list('widths', '2,4,8,16,32').map(Number);
  if (!widths.length) return;
  meter.say('Comparing widths');
  result.check = await assistant.check(widths);
  for (const [width, equal] of Object.entries(result.check.equal)) row(`Width ${width} against 1`, equal ? 'equal' : 'DIFFERENT');
}

/** Milliseconds a token after the first window, and tokens a step. */
function pace({ times, reply_ids: ids, records, tokens_per_second: rate }) {
  return { milliseconds: rate ? 1000 / rate : 0, perStep: ids.length / Math.max(1, records.length), prefill: 1000 * times.prefill };
}

/** One prompt in every mode; whether all gave the same ids. */
async function compareModes(assistant, modes, { id, instruction, page }, sampling) {
  const maxTokens = Number(query.get('tokens') ?? (query.has('prompts') ? 64 : SHORT_TOKENS));
  const options = { maxTokens, sampling };
  const replies = {};
  const ids = {};
  for (const mode of modes) {
    const chat = assistant.chat({ text: page ?? '' });
    replies[mode] = await chat.ask(instruction, { ...options, mode, reuse: false });
    ids[mode] = [...replies[mode].reply_ids];
    for (const question of FOLLOW_UPS.slice(0, Number(query.get('follow_ups') ?? 0))) {
      const reply = await chat.ask(question, { ...options, mode, reuse: mode !== modes[0] });
      ids[mode].push(...reply.reply_ids);
      if (mode !== modes[0]) result.reused = (result.reused ?? 0) + reply.reused;
    }
    await chat.close();
  }
  const first = replies[modes[0]];
  const different = modes.filter((mode) => String(ids[mode]) !== String(ids[modes[0]]));
  const brief = ({ maps, submits, dispatches, steps, widths, reply_ids: ids }) => ({ maps, submits, dispatches, steps, widths, tokens: ids.length });
  const seen = Object.fromEntries(modes.map((mode) => [mode, { ...brief(replies[mode]), ...pace(replies[mode]) }]));
  result.prompts.push({ id, seed: sampling?.seed, different, prompt: first.prompt_ids.length, answer: first.answer, ...seen });
  return seen;
}

/** The prompts that the query names, or the short ones. */
async function readPrompts() {
  if (!query.has('prompts')) return SHORT_PROMPTS;
  return (await read(query.get('prompts'))).split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

async function comparePrompts(assistant) {
  if (query.get('prompts') === '') return;
  const all = await readPrompts();
  const first = Number(query.get('first') ?? 0);
  const prompts = all.slice(first, first + Number(query.get('count') ?? all.length));
  const modes = list('modes', 'greedy,loop');
  const paces = [];
  for (const [number, prompt] of prompts.entries()) {
    meter.say('Comparing modes', `prompt ${number + 1} of ${prompts.length}`);
    paces.push(await compareModes(assistant, modes, prompt));
  }
  summarise('greedy choice', prompts.length, modes, paces);
  for (const seed of list('seeds', '').map(Number)) {
    const drawn = prompts.slice(0, Number(query.get('sampled') ?? 0));
    const sampledPaces = [];
    for (const [number, prompt] of drawn.entries()) {
      meter.say('Comparing modes', `seed ${seed}, prompt ${number + 1} of ${drawn.length}`);
      sampledPaces.push(await compareModes(assistant, modes, prompt, { temperature: 0.8, top_p: 0.95, seed }));
    }
    summarise(`seed ${seed}`, drawn.length, modes, sampledPaces);
  }
}

function summarise(what, count, modes, paces) {
  const recent = result.prompts.slice(-count);
  const equal = recent.filter(({ different }) => !different.length).length;
  row(`${what}: prompts with the same ids in ${modes.join(', ')}`, `${equal} of ${count}`);
  const summary = { what, count, equal, modes: {} };
  for (const mode of modes) {
    const of = (name) => paces.map((seen) => seen[mode][name]);
    const mean = of('perStep').reduce((a, b) => a + b, 0) / Math.max(1, count);
    summary.modes[mode] = { milliseconds: median(of('milliseconds')), perStep: mean };
    row(`${what}, ${mode}: median ms a token, tokens a step`, `${median(of('milliseconds')).toFixed(3)}, ${mean.toFixed(2)}`);
  }
  (result.summary ??= []).push(summary);
}

async function measurePerplexity(assistant) {
  if (!query.has('text')) return;
  const text = await read(query.get('text'));
  for (const tokens of list('text_tokens', '256')) {
    meter.say('Measuring perplexity', `${tokens} tokens`);
    const { perplexity } = await assistant.perplexity(text, Number(tokens));
    result.perplexity.push({ tokens: Number(tokens), perplexity });
    row(`Perplexity, ${tokens} tokens`, perplexity.toFixed(3));
  }
}

async function calibrate(assistant) {
  meter.say('Calibrating');
  const start = performance.now();
  result.calibration = await assistant.recalibrate();
  result.calibrated = (performance.now() - start) / 1000;
  row('Calibrated after', `${result.calibrated.toFixed(2)} s`);
  const costs = Object.entries(result.calibration.costs);
  row('Milliseconds a step by width', costs.map(([width, cost]) => `${width}: ${cost.toFixed(2)}`).join(', '));
  row('Window', result.calibration.window);
}

async function run() {
  const onProgress = (progress) => meter.show(progress);
  onProgress({ stage: 'runtime' });
  const start = performance.now();
  const model = query.get('model') ?? 'smollm2-135m-instruct';
  const assistant = await Assistant.load({ model, memory: query.get('memory') ?? 'off', kv: query.get('kv') ?? 'f16', onProgress });
  result.ready = (performance.now() - start) / 1000;
  row('Ready after', `${result.ready.toFixed(2)} s`);
  await compareWidths(assistant);
  await measurePerplexity(assistant);
  if (list('modes', '').includes('adaptive')) await calibrate(assistant);
  if (query.get('drafting')) {
    result.drafting = await assistant.request('draft_costs', {});
    row('Drafting, ms a step by tokens of memory', JSON.stringify(result.drafting));
  }
  await comparePrompts(assistant);
}

/** What all comparisons together say. */
function verdict() {
  const widths = Object.entries(result.check?.equal ?? {});
  if (!widths.length && !result.prompts.length) return 'Nothing was compared.';
  const differing = [
    ...widths.filter(([, equal]) => !equal).map(([width]) => `width ${width}`),
    ...result.prompts.flatMap(({ id, different }) => different.map((mode) => `${mode} on prompt ${id}`)),
  ];
  return differing.length ? `DIFFERENT: ${differing.join(', ')}.` : 'All equal.';
}

part('progress').replaceWith(meter.element);
try {
  await run();
  part('verdict').textContent = verdict();
} catch (error) {
  result.error = `${error.name}: ${error.message}`;
  complain(part('alert'), error, () => location.reload());
}
meter.hide();
if (query.has('report')) await fetch(query.get('report'), { method: 'POST', body: JSON.stringify(result) });
