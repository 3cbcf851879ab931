/**
 * The benchmark page. Its form can be filled in, and the run started, by the query string:
 *   model    short name or URL; or
 *   shape    random weights of a model's shape, for instance qwen2.5-0.5b: no download
 *   parts    comma list of visits, widths, modes, prefill, roles, host, cuts, frames
 *   visits   1: the part `visits` too
 *   runs, tokens, position, steps, batch   numbers, as pyweb/bench/settings.py describes them; widths, lengths,
 *            role_widths: comma lists of numbers; modes, host_modes: comma lists
 *   prompts  URL of JSON lines {id, instruction, page} in place of the built-in tasks; first, count: which of them
 *   windows, seconds   of the part frames: comma list of steps, and seconds of decoding for each
 *   spin     microseconds by which each dispatch is slowed for the part frames, as on a weak GPU
 *   context, kv   as `Assistant.load` takes them
 *   auto     1 starts without the button
 *   report   URL that gets the result by POST at the end
 *
 * Whoever drives the page finds in `globalThis.benchmark` what is being measured (`progress`, a text) and, at the end,
 * the `result`; it has an `error` {name, message, remedy} where something went wrong.
 */
import { drawCharts } from './bench-charts.js';
import { measure, PARTS } from './bench-run.js';
import { complain, element, isStop, Meter, swap } from './widgets.js';

const INDEX = new URL('./models/index.json', import.meta.url).href;
const SHAPES = [
  ...['qwen2.5-0.5b', 'qwen2.5-1.5b', 'llama-3.2-1b', 'qwen2.5-3b', 'llama-3.2-3b', 'qwen2.5-7b', 'llama-3.1-8b'],
];
const USUAL = ['widths', 'modes', 'prefill', 'roles', 'host'];
const KEPT = 'pyweb-bench'; // a run that goes on behind a reload

const query = new URLSearchParams(location.search);
const list = (name) => query.get(name)?.split(',').filter(Boolean);
const number = (name) => (query.has(name) ? Number(query.get(name)) : undefined);

/** What a run that reloaded the page left behind, once. */
function resumed() {
  const kept = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  return JSON.parse(kept);
}

/** Settings that only the query string has. */
function furtherSettings() {
  const numbers = Object.fromEntries(['position', 'steps', 'batch'].map((name) => [name, number(name)]));
  const widths = ['widths', 'lengths', 'role_widths'].map((name) => [name, list(name)?.map(Number)]);
  const modes = ['modes', 'host_modes'].map((name) => [name, list(name)]);
  return { ...numbers, ...Object.fromEntries([...widths, ...modes]) };
}

/** A table of a result, as it scrolls on a phone. */
function tableOf({ title, columns, rows, note }) {
  const cells = (row) => row.map((cell, at) => (at ? element('td', {}, cell) : element('th', { scope: 'row' }, cell)));
  const heads = columns.map((column) => element('th', { scope: 'col' }, column));
  const table = element(
    'table',
    { 'aria-label': title },
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody', {}, ...rows.map((row) => element('tr', {}, ...cells(row)))),
  );
  const label = `Table: ${title}`;
  const scroll = element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': label }, table);
  return element('div', {}, element('h3', {}, title), scroll, element('p', { class: 'hint' }, note));
}

class BenchPage {
  #view;
  #meter = new Meter({ bench: 'Measuring', prefill: 'Measuring', frames: 'Measuring' });
  #alert = element('div', { class: 'alert', role: 'alert' });
  #models = [];
  #running = null; // AbortController of the run
  #result = null;

  constructor(view) {
    this.#view = view;
    view.state.replaceChildren(this.#meter.element, this.#alert);
    const chosen = list('parts') ?? USUAL;
    for (const [name, label] of Object.entries(PARTS)) {
      const box = element('input', { type: 'checkbox', name: 'part', value: name });
      box.checked = chosen.includes(name) || (name === 'visits' && query.get('visits') === '1');
      view.parts.append(element('label', {}, box, label));
    }
    view.runs.value = query.get('runs') ?? '';
    view.tokens.value = query.get('tokens') ?? '';
    view.model.onchange = () => this.#describe();
    view.form.onsubmit = (event) => {
      event.preventDefault();
      if (!this.#running) this.run(this.#plan());
    };
    view.cancel.onclick = () => this.#running?.abort();
    view.download.onclick = () => this.#download();
    view.copy.onclick = () => this.#copy();
  }

  /** Lists the site's models and the shapes, and chooses what the address names. */
  async offer() {
    const { model, url } = this.#view;
    const models = await fetch(INDEX).then((reply) => reply.json()).catch(() => []);
    this.#models = models.map((row) => ({ ...row, url: new URL(row.url, INDEX).href }));
    const options = (rows) => rows.map(([value, label]) => element('option', { value }, label));
    const shapes = SHAPES.map((name) => [`shape:${name}`, name]);
    model.replaceChildren(
      element('optgroup', { label: 'Models of this site' }, ...options(models.map(({ name }) => [name, name]))),
      element('optgroup', { label: 'Random weights, no download' }, ...options(shapes)),
      ...options([['url', 'From a URL']]),
    );
    const wanted = query.has('shape') ? `shape:${query.get('shape')}` : query.get('model');
    if (wanted) model.value = wanted;
    if (wanted && model.selectedIndex < 0) {
      if (query.has('shape')) model.append(...options([[wanted, query.get('shape')]]));
      else url.value = new URL(wanted, document.baseURI).href;
      model.value = query.has('shape') ? wanted : 'url';
    }
    if (!wanted) model.selectedIndex = 0;
    this.#describe();
  }

  #describe() {
    const { model, url, about } = this.#view;
    url.parentNode.hidden = model.value !== 'url';
    url.required = model.value === 'url';
    about.textContent = model.value.startsWith('shape:')
      ? 'Random weights of this model’s sizes, made here: as fast as the model, but what it writes is noise.'
      : 'Downloaded once, if it isn’t here yet.';
  }

  /** @returns {import('./bench-run.js').Plan} */
  #plan() {
    const { model, url, parts, runs, tokens } = this.#view;
    const shape = model.value.startsWith('shape:') && model.value.slice('shape:'.length);
    const whole = ({ value }) => (value === '' ? undefined : Number(value));
    const chosen = [...parts.querySelectorAll(':checked')].map(({ value }) => value);
    const unknown = (list('parts') ?? []).filter((name) => !(name in PARTS)); // said when it starts
    const named = this.#models.find(({ name }) => name === model.value);
    return {
      model: shape ? { shape } : (named ?? { name: url.value.split('/').at(-1), url: url.value }),
      parts: [...chosen, ...unknown],
      settings: { ...furtherSettings(), runs: whole(runs), tokens: whole(tokens) },
      prompts: query.get('prompts') && new URL(query.get('prompts'), document.baseURI).href,
      first: number('first'),
      count: number('count'),
      context: number('context'),
      kv: query.get('kv') ?? undefined,
      windows: list('windows')?.map(Number),
      seconds: number('seconds'),
      spin: number('spin'),
    };
  }

  /** What the form says, as a run. */
  start() {
    return this.run(this.#plan());
  }

  /**
   * @param {import('./bench-run.js').Plan} plan
   * @param {object[]} [visits] measured before the page was loaded again
   */
  async run(plan, visits = []) {
    const { start, cancel, fields } = this.#view;
    const { signal } = (this.#running = new AbortController());
    this.#alert.replaceChildren();
    swap(start, cancel);
    fields.disabled = true;
    globalThis.benchmark = { progress: '' };
    this.#result = null;
    this.#view.results.hidden = true;
    let error = null;
    const onProgress = (progress) => {
      if (signal.aborted) return;
      this.#meter.show(progress);
      globalThis.benchmark.progress = progress.note || progress.stage;
    };
    try {
      onProgress({ stage: 'runtime' });
      const before = await measure(plan, visits, { onProgress, signal, onResult: (result) => this.#show(result) });
      if (before) {
        sessionStorage.setItem(KEPT, JSON.stringify({ plan, visits: before }));
        location.reload();
        return;
      }
    } catch (caught) {
      error = caught;
      if (!isStop(error)) complain(this.#alert, error, () => this.run(plan));
    }
    this.#running = null;
    this.#meter.hide();
    fields.disabled = false;
    swap(cancel, start);
    if (!error && this.#view.results.hidden === false) this.#view['results-title'].focus();
    await this.#report(error);
  }

  #show(result) {
    const { results, machine, tables } = this.#view;
    results.hidden = result.tables.length === 0;
    drawCharts(result, this.#result, (part) => this.#view[`${part}-chart`]);
    this.#result = result;
    const { machine: found, name, model } = result;
    const sizes = `${model.layers} layers of ${model.hidden}, ${model.context.toLocaleString('en')} tokens of context`;
    machine.textContent = `${name}: ${sizes}. ${found.adapter}, ${found.tuning} kernels.`;
    tables.replaceChildren(...result.tables.map(tableOf));
  }

  /** Hands the result to whoever drives the page. */
  async #report(error) {
    const { name, message, remedy = '' } = error ?? {};
    const result = { ...this.#result, ...(error && { error: { name, message, remedy } }) };
    globalThis.benchmark.result = result;
    if (query.has('report')) await fetch(query.get('report'), { method: 'POST', body: JSON.stringify(result) });
  }

  #json() {
    return JSON.stringify(this.#result, null, 2);
  }

  #download() {
    const href = URL.createObjectURL(new Blob([this.#json()], { type: 'application/json' }));
    element('a', { href, download: 'pyweb-bench.json' }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }

  async #copy() {
    const { copied } = this.#view;
    copied.textContent = '';
    await navigator.clipboard.writeText(this.#json()).then(
      () => (copied.textContent = 'Copied.'),
      () => (copied.textContent = 'The browser did not allow that: download it instead.'),
    );
  }
}

const parts = [...document.querySelectorAll('[data-bench] [id]')];
const page = new BenchPage(Object.fromEntries(parts.map((part) => [part.id, part])));
const kept = resumed();
await page.offer();
if (kept) page.run(kept.plan, kept.visits);
else if (query.get('auto') === '1') page.start();
