/**
 * The chat page: a model is chosen and loaded, then one talks with it. Nothing is downloaded before that.
 *
 * `?model=` chooses one of the site's models by its name, or any other by the URL of its GGUF file.
 */
import { Conversation } from './conversation.js';
import { Assistant } from './js_bridge/client.js';
import { complain, element, inWords, isStop, Meter, swap } from './widgets.js';

const INDEX = new URL('./models/index.json', import.meta.url).href;

const URL_HINT = 'The server must allow this site (CORS); byte ranges let a broken download resume.';

const OTHERS = [
  ['url', 'From a URL'],
  ['file', 'A file on this device'],
];

/**
 * Brings the page to life.
 * @param {object} [options]
 * @param {string} [options.model] what is chosen at first: a name or URL
 * @param {typeof Assistant.load} [options.load] how an assistant is made
 */
export async function attachChat({ model, load = Assistant.load } = {}) {
  const parts = [...document.querySelectorAll('[data-chat] [id]')];
  const page = new ChatPage(Object.fromEntries(parts.map((part) => [part.id, part])), load);
  await page.offer(model);
}

/** The models that this site carries; none where there is no list. */
async function offered() {
  try {
    const models = await (await fetch(INDEX)).json();
    return models.map((model) => ({ ...model, url: new URL(model.url, INDEX).href }));
  } catch {
    return [];
  }
}

/** A field's number within its bounds, a whole one where its step is 1; undefined where it is empty. */
function numberOf({ valueAsNumber: value, min, max, step }) {
  if (Number.isNaN(value)) return undefined;
  return Math.min(Math.max(step === '1' ? Math.round(value) : value, Number(min)), Number(max));
}

/** What loading found, sentence by sentence. */
function facts({ context, gpu_bytes: bytes, adapter, not_kept: notKept, notes, warning }) {
  const kept = notKept && `The browser doesn’t keep the file (${notKept}): the next visit downloads it again.`;
  return [
    `${context.toLocaleString('en')} tokens of context`,
    `${inWords(bytes.weights)} of weights and ${inWords(bytes.kv_cache)} of keys and values on the GPU`,
    ...[adapter, kept, ...notes, warning].filter(Boolean),
  ];
}

class ChatPage {
  #view;
  #load;
  #meter = new Meter();
  #alert = element('div', { class: 'alert', role: 'alert' });
  #models = [];
  #loading = null; // AbortController of the load
  #assistant = null;
  #conversation = null;

  constructor(view, load) {
    this.#view = view;
    this.#load = load;
    view.state.replaceChildren(this.#meter.element, this.#alert);
    view.model.onchange = view.file.onchange = () => this.#describe();
    view.choice.onsubmit = (event) => {
      event.preventDefault();
      if (!this.#loading) this.#start();
    };
    view.cancel.onclick = () => this.#loading?.abort();
    view.other.onclick = () => this.#leave();
    view.forget.onclick = () => this.#forget();
    for (const field of [view.temperature, view.seed, view.length, view.context]) {
      field.onchange = () => (field.value = numberOf(field) ?? '');
    }
    document.onkeydown = ({ key, isComposing }) => {
      if (key === 'Escape' && !isComposing) this.#conversation?.halt();
    };
  }

  /** Lists the site's models and chooses one. */
  async offer(wanted) {
    const { model, url } = this.#view;
    this.#models = await offered();
    const rows = this.#models.map(({ name }, index) => [index, name]);
    const options = [...rows, ...OTHERS].map(([value, label]) => element('option', { value }, label));
    model.replaceChildren(...options);
    const known = this.#models.findIndex(({ name }) => name === wanted);
    if (wanted && known < 0) url.value = wanted;
    model.selectedIndex = wanted && known < 0 ? this.#models.length : Math.max(known, 0);
    this.#describe();
  }

  #describe() {
    const { model, url, file, about } = this.#view;
    url.parentNode.hidden = model.value !== 'url';
    url.required = model.value === 'url';
    file.parentNode.hidden = model.value !== 'file';
    file.required = model.value === 'file';
    const chosen = model.value === 'file' ? file.files[0] : this.#models[model.value];
    const { size, source, licence } = chosen ?? {};
    const known = [size && inWords(size), source, licence].filter(Boolean).join(' · ');
    about.textContent = model.value === 'url' ? URL_HINT : known;
  }

  /** What is chosen, as `Assistant.load` takes it. */
  #chosen() {
    const { model, url, file } = this.#view;
    const source = { url: url.value, file: file.files[0] }[model.value] ?? this.#models[model.value];
    return { model: source, context: numberOf(this.#view.context), memory: this.#view.memory.value };
  }

  async #start() {
    const { load, cancel, fields, before } = this.#view;
    const { signal } = (this.#loading = new AbortController());
    const onProgress = (progress) => signal.aborted || this.#meter.show(progress);
    const chosen = this.#chosen();
    this.#alert.replaceChildren();
    swap(load, cancel);
    fields.disabled = before.disabled = true;
    try {
      onProgress({ stage: 'runtime' });
      this.#assistant = await this.#load({ ...chosen, signal, onProgress });
      this.#enter(chosen);
    } catch (error) {
      fields.disabled = before.disabled = false;
      if (!isStop(error)) complain(this.#alert, error, () => this.#again());
    } finally {
      this.#loading = null;
      this.#meter.hide();
      swap(cancel, load);
    }
  }

  #again() {
    this.#view.load.focus();
    this.#start();
  }

  /** Begins to talk with the model that was loaded. */
  #enter(chosen) {
    const { choice, loaded, settings, name, facts: list, forget, talk } = this.#view;
    const { notes, warning } = this.#assistant.loaded;
    const { model, memory } = chosen;
    name.textContent = model.name ?? model.split('/').at(-1);
    list.replaceChildren(...facts(this.#assistant.loaded).map((fact) => element('li', {}, fact)));
    choice.hidden = true;
    loaded.hidden = false;
    settings.open = false; // the conversation begins below
    forget.hidden = memory === 'off';
    const hooks = {
      begin: (handlers) => this.#begin(chosen, handlers),
      about: () => this.#view.system.value,
      options: () => this.#options(),
      broken: () => this.#drop(),
    };
    const intro = element('p', { class: 'hint' }, 'Follow-up questions know the earlier ones.');
    const looks = { intro, wholePage: true, told: [...notes, warning] };
    this.#conversation = new Conversation(hooks, looks);
    talk.replaceChildren(this.#conversation.element);
    this.#conversation.question.focus();
  }

  /** A conversation about nothing but what is said in it. */
  async #begin(chosen, { signal, onProgress }) {
    if (!this.#assistant) onProgress({ stage: 'runtime' });
    this.#assistant ??= await this.#load({ ...chosen, signal, onProgress });
    return this.#assistant.chat({ page: null, system: this.#view.system.value.trim() || undefined });
  }

  /** Without a seed every answer takes its own. */
  #options() {
    const { temperature: heat, seed, length } = this.#view;
    const temperature = numberOf(heat) ?? 0;
    const sampling = { temperature, seed: numberOf(seed) ?? Math.floor(Math.random() * 2 ** 32) };
    return { maxTokens: numberOf(length), sampling: temperature ? sampling : undefined };
  }

  #drop() {
    this.#assistant?.close();
    this.#assistant = null;
  }

  /** Back to the choice of a model. */
  #leave() {
    const { choice, loaded, fields, before, talk, model, forgotten } = this.#view;
    this.#drop();
    this.#conversation = null;
    talk.replaceChildren();
    forgotten.textContent = '';
    loaded.hidden = true;
    choice.hidden = fields.disabled = before.disabled = false;
    model.focus();
  }

  async #forget() {
    const { forgotten } = this.#view;
    forgotten.textContent = '';
    try {
      await this.#assistant?.forget();
      forgotten.textContent = 'Forgotten.';
    } catch (error) {
      forgotten.textContent = `${error.message} ${error.remedy ?? ''} (${error.name})`;
    }
  }
}

if (document.querySelector('[data-chat]')) {
  attachChat({ model: new URLSearchParams(location.search).get('model') ?? undefined });
}
