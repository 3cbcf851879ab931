/**
 * The exactness page, driven by its query string:
 *   model    short name or URL (smollm2-135m-instruct)
 *   widths   comma list to compare with width 1 (2,4,8,16,32); empty: none
 *   prompts  URL of JSON lines {id, instruction, page}: each is answered in `greedy` and in `loop`
 *   tokens   tokens of a reply (64)
 *   text, text_tokens   URL of a text and a comma list of token counts: its perplexity
 *   report   URL that gets the result by POST
 */
import { Assistant } from './js_bridge/client.js';

const query = new URLSearchParams(location.search);
const list = (name, otherwise) => (query.get(name) ?? otherwise).split(',').filter(Boolean);
const result = { userAgent: navigator.userAgent, prompts: [], perplexity: [] };

function status(text) {
  document.getElementById('status').textContent = text;
}

function row(what, value) {
  const line = document.getElementById('rows').insertRow();
  line.insertCell().textContent = what;
  line.insertCell().textContent = value;
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? 0;
const read = async (url) => (await fetch(url)).text();

async function compareWidths(assistant) {
  const widths = list('widths', '2,4,8,16,32').map(Number);
  if (!widths.length) return;
  status('Comparing widths…');
  result.check = await assistant.check(widths);
  for (const [width, equal] of Object.entries(result.check.equal)) row(`width ${width} against 1`, equal ? 'equal' : 'DIFFERENT');
}

/** Milliseconds a token after the first. */
const pace = ({ times, reply_ids: ids }) => (1000 * times.decode) / Math.max(1, ids.length - 1);

async function compareModes(assistant, { id, instruction, page }) {
  const options = { text: page ?? '', maxTokens: Number(query.get('tokens') ?? 64) };
  const greedy = await assistant.ask(instruction, { ...options, mode: 'greedy' });
  const loop = await assistant.ask(instruction, { ...options, mode: 'loop' });
  const equal = String(greedy.reply_ids) === String(loop.reply_ids);
  const brief = ({ times, maps, submits, dispatches, steps, reply_ids: ids }) => ({ times, maps, submits, dispatches, steps, tokens: ids.length });
  result.prompts.push({ id, equal, prompt: greedy.prompt_ids.length, greedy: brief(greedy), loop: brief(loop), answer: loop.answer });
  row(`prompt ${id}`, equal ? `equal, ${loop.reply_ids.length} tokens` : 'DIFFERENT');
  return { greedy: pace(greedy), loop: pace(loop) };
}

async function comparePrompts(assistant) {
  if (!query.has('prompts')) return;
  const prompts = (await read(query.get('prompts'))).split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const paces = [];
  for (const prompt of prompts) {
    status(`Prompt ${paces.length + 1} of ${prompts.length}…`);
    paces.push(await compareModes(assistant, prompt));
  }
  result.milliseconds = { greedy: median(paces.map(({ greedy }) => greedy)), loop: median(paces.map(({ loop }) => loop)) };
  for (const [mode, value] of Object.entries(result.milliseconds)) row(`${mode}, median ms a token`, value.toFixed(3));
}

async function measurePerplexity(assistant) {
  if (!query.has('text')) return;
  const text = await read(query.get('text'));
  for (const tokens of list('text_tokens', '256')) {
    status(`Perplexity of ${tokens} tokens…`);
    const { perplexity } = await assistant.perplexity(text, Number(tokens));
    result.perplexity.push({ tokens: Number(tokens), perplexity });
    row(`perplexity, ${tokens} tokens`, perplexity.toFixed(3));
  }
}

async function run() {
  const onProgress = ({ stage, done, total }) => status(`${stage} ${done} of ${total}`);
  const start = performance.now();
  const assistant = await Assistant.load({ model: query.get('model') ?? 'smollm2-135m-instruct', onProgress });
  result.ready = (performance.now() - start) / 1000;
  row('ready after, seconds', result.ready.toFixed(2));
  await compareWidths(assistant);
  await measurePerplexity(assistant);
  await comparePrompts(assistant);
  status('Done.');
}

try {
  await run();
} catch (error) {
  result.error = `${error.name}: ${error.message}`;
  status(`${result.error} ${error.remedy ?? ''}`);
}
if (query.has('report')) await fetch(query.get('report'), { method: 'POST', body: JSON.stringify(result) });
