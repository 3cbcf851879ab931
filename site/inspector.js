/**
 * The inspector: asks a question and shows each step of the reply, live and afterwards.
 *
 * `?model=` takes a short name out of `models/index.json` or the URL of a GGUF file. Nothing is downloaded before the
 * first run.
 */
import { Charts } from './inspector-charts.js';
import { Run, SOURCES } from './inspector-run.js';
import { drawTree, visible } from './inspector-tree.js';
import { Assistant } from './js_bridge/client.js';

const DEFAULT_MODEL = 'smollm2-135m-instruct';
const ARTICLE = 'demo/article.html';

const STAGES = {
  runtime: 'Starting the runtime.',
  model: 'Loading the model.',
  kernels: 'Preparing the GPU.',
  prefill: 'Reading the text.',
  costs: 'Measuring what steps cost on this device.',
  steps: 'Answering.',
};

const OUTCOMES = { last: 'stands already', accepted: 'accepted', rejected: 'not accepted', waiting: 'not checked' };
const ENDS = { cancelled: 'Stopped', length: 'Ended at the limit of tokens', stop: 'Done' };

/** Errors of one question; after any other the model is loaded anew. */
const OF_THE_QUESTION = new Set(['EmptyPageError', 'PromptTooLongError', 'TemplateError', 'UsageError']);

/**
 * Brings the page to life.
 * @param {object} [options]
 * @param {string} [options.model] short name or URL
 * @param {typeof Assistant.load} [options.load] how an assistant is made
 */
export function attachInspector({ model = DEFAULT_MODEL, load = Assistant.load } = {}) {
  const parts = [...document.querySelectorAll('[data-inspector] [id]')];
  const view = Object.fromEntries(parts.map((part) => [part.id, part]));
  return new Inspector(view, (options) => load({ model, ...options }));
}

const counted = (count, noun, ending = 's') => `${count} ${noun}${count === 1 ? '' : ending}`;
const decimal = (number, digits) => (number === null ? '–' : number.toFixed(digits));

function fill(table, rows) {
  table.tBodies[0].replaceChildren();
  for (const cells of rows) {
    const row = table.tBodies[0].insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
  }
}

/** What the form asks about, as options of `ask`. */
async function material(view) {
  if (view.material.value === 'text') return { text: view.text.value };
  const url = new URL(ARTICLE, document.baseURI).href;
  const html = await (await fetch(url)).text();
  return { page: { html, url, title: new DOMParser().parseFromString(html, 'text/html').title } };
}

/** What a step did, in a sentence. */
function sentence({ number, width, matchLength, accepted, tokens, reported }) {
  const before = matchLength
    ? `The last ${matchLength === 1 ? 'token' : `${matchLength} tokens`} had occurred before. `
    : '';
  const checked = width === 1 ? 'One node: no guess was checked' : `${width} nodes were checked`;
  const own = tokens.length > accepted ? 'one of the model’s own' : 'the reply’s end';
  const kept = accepted ? `${counted(accepted, 'guess', 'es')} accepted and ${own}` : own;
  const partly = reported || width === 1 ? '' : ' The first tree is drawn as far as it was accepted.';
  return `Step ${number}. ${before}${checked}; the step gave ${kept}.${partly}`;
}

/** Behaviour: one run at a time, and a step of it that is looked at. */
class Inspector {
  #view;
  #load;
  #charts;
  #assistant = null;
  #scope = 'off';
  #earlier = []; // ids of replies that the assistant remembers
  #running = null; // AbortController of the run
  #run = new Run();
  #shown = 0;
  #following = true;
  #frame = 0;
  #listed = 0; // steps that the table has

  constructor(view, load) {
    this.#view = view;
    this.#load = load;
    const elements = { widths: view['width-chart'], accepted: view['accepted-chart'], costs: view['cost-chart'] };
    this.#charts = new Charts(elements, (index) => this.#go(index));
    view.material.onchange = () => (view.own.hidden = view.material.value !== 'text');
    view.material.onchange();
    view.form.onsubmit = (event) => {
      event.preventDefault();
      if (!this.#running) this.#start(() => this.#ask());
    };
    view.measure.onclick = () => this.#running || this.#start(() => this.#measure());
    view.stop.onclick = () => this.#running?.abort();
    view.step.oninput = () => this.#go(view.step.valueAsNumber - 1);
    view.previous.onclick = () => this.#go(this.#shown - 1);
    view.next.onclick = () => this.#go(this.#shown + 1);
    document.onkeydown = (event) => this.#key(event);
  }

  #key({ key, target, ctrlKey, altKey, metaKey, shiftKey }) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    // Fields and whatever scrolls sideways need the arrows themselves.
    if (!by || ctrlKey || altKey || metaKey || shiftKey) return;
    if (target.closest?.('input, select, textarea, .tree, .scroll')) return;
    this.#go(this.#shown + by);
  }

  /** Shows another step; the last one is followed while the run goes on. */
  #go(index) {
    const last = this.#run.steps.length - 1;
    if (last < 0) return;
    this.#shown = Math.min(Math.max(index, 0), last);
    this.#following = this.#shown === last;
    this.#render();
  }

  async #start(work) {
    const view = this.#view;
    this.#running = new AbortController();
    view.alert.replaceChildren();
    view.measure.disabled = true;
    this.#swap(view.run, view.stop);
    try {
      await work();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#running = null;
      view.progress.hidden = true;
      view.measure.disabled = false;
      this.#swap(view.stop, view.run);
      this.#render();
    }
  }

  async #ask() {
    const { question, mode, limit, memory } = this.#view;
    const { signal } = this.#running;
    const scope = memory.value;
    const options = { mode: mode.value, maxTokens: limit.valueAsNumber, signal, ...(await material(this.#view)) };
    await this.#loaded(scope);
    if (options.mode === 'adaptive' && !this.#assistant.loaded.calibration) await this.#calibrate();
    signal.throwIfAborted();
    const run = new Run(this.#earlier);
    this.#progress({ stage: 'prefill' });
    const reply = await this.#assistant.ask(question.value.trim(), {
      ...options,
      onProgress: (progress) => this.#progress(progress),
      onStep: (step) => this.#take(run, step),
    });
    run.finish(reply);
    if (scope !== 'off') this.#earlier = [...this.#earlier, ...reply.reply_ids];
    this.#say(this.#summary(reply));
  }

  async #measure() {
    await this.#loaded(this.#view.memory.value);
    await this.#calibrate();
    this.#say('Costs measured.');
  }

  /** The assistant with this scope of memory; another scope needs another one. */
  async #loaded(scope) {
    if (this.#assistant && this.#scope !== scope) this.#drop();
    if (this.#assistant) return;
    this.#scope = scope;
    this.#progress({ stage: 'runtime' });
    const { signal } = this.#running;
    this.#assistant = await this.#load({ memory: scope, signal, onProgress: (progress) => this.#progress(progress) });
    this.#costs();
  }

  async #calibrate() {
    this.#progress({ stage: 'costs' });
    this.#assistant.loaded.calibration = await this.#assistant.recalibrate();
    this.#costs();
  }

  #drop() {
    this.#assistant?.close();
    this.#assistant = null;
    this.#earlier = [];
  }

  #take(run, step) {
    run.add(step);
    if (!step.record) return;
    if (this.#run !== run) this.#follow(run);
    this.#progress({ stage: 'steps' });
    if (this.#following) this.#shown = run.steps.length - 1;
    this.#frame ||= requestAnimationFrame(() => this.#render());
  }

  /** Puts a run in the place of the one before, which is shown until then. */
  #follow(run) {
    this.#run = run;
    this.#listed = 0;
    this.#following = true;
    this.#view.table.tBodies[0].replaceChildren();
  }

  #render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.#run.steps.length) return;
    this.#view.results.hidden = false;
    const { tokens, steps, rate, pace } = this.#run.totals();
    const texts = { tokens, steps, rate: decimal(rate, 2), pace: decimal(pace, 1), origins: this.#origins() };
    for (const [name, text] of Object.entries(texts)) this.#view[name].textContent = text;
    this.#charts.steps(this.#run.steps, this.#shown);
    this.#list();
    this.#look();
    this.#costs(); // the chart has no width before the results are shown
  }

  /** The step that is looked at: slider, tree and reply. */
  #look() {
    const view = this.#view;
    const step = this.#run.steps[this.#shown];
    const nodes = this.#run.nodes(this.#shown);
    const place = `Step ${step.number} of ${this.#run.steps.length}`;
    view.step.max = this.#run.steps.length;
    view.step.value = step.number;
    view.position.value = place;
    view.facts.textContent = sentence(step);
    view.step.setAttribute('aria-valuetext', `${place}, width ${step.width}, ${counted(step.tokens.length, 'token')}`);
    view.previous.disabled = this.#shown === 0;
    view.next.disabled = this.#shown === this.#run.steps.length - 1;
    const lit = step.path.map((number) => visible(nodes[number].text)).join(' ');
    const summary = `Tree of ${counted(nodes.length, 'node')}, ${step.path.length} accepted${lit && `: ${lit}`}`;
    view.tree.replaceChildren(drawTree(nodes, summary));
    fill(
      view.nodes,
      nodes.map(({ text, parent, source, state }, number) => {
        const [follows, from] = number ? [parent, SOURCES[source].name] : ['–', '–'];
        return [number, visible(text), follows, from, OUTCOMES[state]];
      }),
    );
    const before = this.#run.steps.slice(0, this.#shown).flatMap(({ tokens }) => tokens.map(({ text }) => text));
    const now = step.tokens.map(({ text }, at) => marked(text, at >= step.accepted));
    view.reply.replaceChildren(before.join(''), ...now);
  }

  #list() {
    const body = this.#view.table.tBodies[0];
    for (const step of this.#run.steps.slice(this.#listed)) {
      const text = visible(step.tokens.map((token) => token.text).join(''));
      const row = body.insertRow();
      const cells = [step.number, step.width, step.matchLength, decimal(step.expected, 2), step.accepted, text];
      for (const cell of cells) row.insertCell().textContent = cell;
    }
    this.#listed = this.#run.steps.length;
  }

  #origins() {
    const counts = Object.entries(this.#run.origins() ?? {});
    if (!counts.length) return '';
    const parts = counts.sort((a, b) => b[1] - a[1]).map(([source, count]) => `${SOURCES[source].name} ${count}`);
    return `Accepted guesses of the whole reply by where they came from: ${parts.join(', ')}.`;
  }

  #costs() {
    const view = this.#view;
    const costs = Object.entries(this.#assistant?.loaded.calibration?.costs ?? {}).map((pair) => pair.map(Number));
    if (!costs.length || view.results.hidden) return;
    costs.sort((a, b) => a[0] - b[0]);
    const [, single] = costs[0];
    this.#charts.costs(costs);
    view['cost-note'].textContent =
      'A wider tree costs more time a step. It pays off where it gives more tokens than the one-node steps ' +
      'that fit into the same time.';
    fill(
      view.costs,
      costs.map(([width, milliseconds]) => [width, milliseconds.toFixed(2), (milliseconds / single).toFixed(2)]),
    );
    view.costs.hidden = false;
    view.measure.textContent = 'Measure again';
  }

  #summary({ finish_reason: reason, adapter }) {
    const { tokens, steps, rate, pace } = this.#run.totals();
    const parts = [`${counted(tokens, 'token')} in ${counted(steps, 'step')}`, `${decimal(rate, 2)} tokens per step`];
    if (pace !== null) parts.push(`${decimal(pace, 1)} ms per token`);
    return `${ENDS[reason] ?? 'Done'}: ${parts.join(', ')}, on ${adapter}.`;
  }

  /** A stage is announced once; its bar isn't. */
  #progress({ stage, done = 0, total = 0 }) {
    const { progress } = this.#view;
    if (this.#running?.signal.aborted) return;
    this.#say(STAGES[stage] ?? stage);
    progress.hidden = stage === 'steps';
    if (done > 0 && total > 1) Object.assign(progress, { max: total, value: done });
    else progress.removeAttribute('value');
  }

  #say(text) {
    if (this.#view.status.textContent !== text) this.#view.status.textContent = text;
  }

  #swap(from, to) {
    const focused = document.activeElement === from;
    to.hidden = false;
    if (focused) to.focus();
    from.hidden = true;
  }

  #fail(error) {
    const stopped = ['StoppedError', 'AbortError'].includes(error.name);
    if (!OF_THE_QUESTION.has(error.name) && !stopped) this.#drop();
    this.#say(stopped ? 'Stopped.' : 'Not answered.');
    if (stopped) return;
    const strong = document.createElement('strong');
    strong.textContent = error.message;
    this.#view.alert.append(strong, ` ${error.remedy ?? ''} (${error.name})`);
  }
}

function marked(text, own) {
  const mark = document.createElement('mark');
  mark.className = own ? 'own' : '';
  mark.textContent = text;
  return mark;
}

if (document.querySelector('[data-inspector]')) {
  attachInspector({ model: new URLSearchParams(location.search).get('model') ?? undefined });
}
