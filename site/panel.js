/**
 * The assistant panel: one script tag adds it to a page.
 *
 *   <script type="module" src="panel.js" data-model="smollm2-135m-instruct" data-context="4096"></script>
 *
 * `data-model` is a short name out of `models/index.json` or the URL of a GGUF file, `data-context` the tokens of
 * context; both may be left out. Nothing is downloaded before the visitor asks. The panel stands in a shadow root
 * below an element with `data-pyweb`, which the snapshot of the page leaves out.
 */
import { Assistant } from './js_bridge/client.js';

const DEFAULT_MODEL = 'smollm2-135m-instruct';

const STAGES = {
  runtime: 'Starting the runtime',
  model: 'Loading the model',
  kernels: 'Preparing the GPU',
  prefill: 'Reading the page',
};

/** Errors of one question; after any other the model is loaded anew. */
const OF_THE_QUESTION = new Set(['EmptyPageError', 'PromptTooLongError', 'StoppedError', 'TemplateError', 'UsageError']);

/**
 * Adds a panel to this page.
 * @param {object} [options]
 * @param {string} [options.model] short name or URL
 * @param {number} [options.context] tokens of context
 * @param {typeof Assistant.load} [options.load] how an assistant is made
 * @returns {HTMLElement} the panel's host; removing it removes the panel
 */
export function attachPanel({ model = DEFAULT_MODEL, context, load = Assistant.load } = {}) {
  const host = element('div', { 'data-pyweb': '' });
  const view = build(host.attachShadow({ mode: 'open' }), model.split('/').at(-1));
  new Panel(view, (handlers) => load({ model, context, ...handlers }));
  document.body.append(host);
  return host;
}

/** What one state of progress says beside its stage. */
function figures({ stage, done, total, note }) {
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  if (stage === 'model' && total) {
    return `${megabytes(done)} of ${megabytes(total)} MB (${Math.floor((100 * done) / total)}%)`;
  }
  if (stage === 'prefill' && total) return `${done} of ${total} tokens`;
  return note ?? '';
}

/** How an answer ended and what it took, in a line. */
function statistics({ reply_ids: ids, tokens_per_second: rate, adapter, finish_reason: reason }) {
  const tokens = `${ids.length} ${ids.length === 1 ? 'token' : 'tokens'}`;
  const ends = { cancelled: ['Stopped'], length: ['Cut at the length limit'] };
  return [...(ends[reason] ?? []), tokens, `${rate.toFixed(1)} tokens/s`, adapter].join(' · ');
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The panel's elements inside a shadow root; hidden until their style is there. */
function build(root, modelName) {
  const view = {
    root,
    launcher: element('button', { type: 'button', class: 'launcher', 'aria-haspopup': 'dialog' }, 'Ask this page'),
    close: element('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '×'),
    log: element('div', { class: 'log', role: 'log', 'aria-label': 'Questions and answers', tabindex: '0' }),
    status: element('span', { role: 'status' }),
    figures: element('span', { class: 'figures' }),
    progress: element('progress', { 'aria-label': 'Progress' }),
    alert: element('div', { class: 'alert', role: 'alert' }),
    question: element('input', { id: 'question', type: 'text', autocomplete: 'off', enterkeyhint: 'send' }),
    ask: element('button', { type: 'submit', class: 'ask' }, 'Ask'),
    stop: element('button', { type: 'button', class: 'stop', hidden: '' }, 'Stop'),
  };
  view.meter = element(
    'div',
    { class: 'meter', hidden: '' },
    element('p', {}, view.status, ' ', view.figures),
    view.progress,
  );
  view.form = element(
    'form',
    {},
    element('label', { for: 'question' }, 'Your question'),
    element('div', { class: 'row' }, view.question, view.ask, view.stop),
  );
  view.intro = element(
    'p',
    { class: 'intro' },
    `${modelName} answers from this page, on this device. The page, your question and the answer never leave it. `,
    'The first question downloads the model; the browser keeps it where it has room. A small model can be wrong.',
  );
  view.dialog = element(
    'dialog',
    { 'aria-labelledby': 'title', lang: 'en', dir: 'ltr' },
    element('header', {}, element('h2', { id: 'title' }, 'Ask this page'), view.close),
    view.intro,
    view.log,
    view.meter,
    view.alert,
    view.form,
  );
  const frame = element('div', { hidden: '' }, view.launcher, view.dialog);
  const style = element('link', { rel: 'stylesheet', href: new URL('./panel.css', import.meta.url).href });
  style.onload = style.onerror = () => (frame.hidden = false);
  root.append(style, frame);
  return view;
}

/** Behaviour: one question at a time, each for itself. */
class Panel {
  #view;
  #load;
  #assistant = null;
  #running = null; // AbortController of the question being answered

  constructor(view, load) {
    this.#view = view;
    this.#load = load;
    view.launcher.onclick = () => this.#open();
    view.close.onclick = () => this.#close();
    view.stop.onclick = () => this.#stop();
    view.form.onsubmit = (event) => {
      event.preventDefault();
      const question = view.question.value.trim();
      if (question && !this.#running) this.#ask(question);
    };
    // Typing here must not trigger the page's keyboard shortcuts.
    for (const kind of ['keydown', 'keypress', 'keyup']) view.dialog.addEventListener(kind, (event) => this.#key(event));
  }

  #key(event) {
    event.stopPropagation();
    if (event.type === 'keydown' && event.key === 'Escape' && !event.isComposing) this.#close();
  }

  #open() {
    this.#view.dialog.show();
    this.#view.launcher.hidden = true;
    this.#view.question.focus();
  }

  #close() {
    this.#view.dialog.close();
    this.#view.launcher.hidden = false;
    this.#view.launcher.focus();
  }

  #stop() {
    this.#running?.abort();
    this.#show('Stopping', '');
  }

  async #ask(question) {
    const { signal } = (this.#running = new AbortController());
    const onProgress = (progress) => signal.aborted || this.#progress(progress);
    const turn = this.#begin(question);
    try {
      this.#progress({ stage: this.#assistant ? 'prefill' : 'runtime' });
      this.#assistant ??= await this.#load({ signal, onProgress });
      this.#progress({ stage: 'prefill' });
      const onText = (text) => this.#write(turn.answer, text);
      const reply = await this.#assistant.ask(question, { signal, onProgress, onText });
      turn.note.textContent = [statistics(reply), reply.warning].filter(Boolean).join(' · ');
    } catch (error) {
      this.#fail(error, turn, question);
    } finally {
      this.#end();
    }
  }

  #begin(question) {
    const { log, alert, intro, question: field } = this.#view;
    alert.replaceChildren();
    intro.hidden = true;
    field.value = '';
    const turn = { answer: document.createTextNode(''), note: element('p', { class: 'note' }) };
    const language = document.documentElement.lang;
    log.setAttribute('aria-busy', 'true'); // announced whole, at the end
    log.append(
      element('p', { class: 'question', dir: 'auto' }, element('span', { class: 'unseen' }, 'You asked: '), question),
      element('p', { class: 'answer', dir: 'auto', ...(language && { lang: language }) }, turn.answer),
      turn.note,
    );
    log.scrollTop = log.scrollHeight;
    this.#swap(this.#view.ask, this.#view.stop);
    this.#view.meter.hidden = false;
    return turn;
  }

  #end() {
    this.#running = null;
    this.#view.meter.hidden = true;
    this.#view.status.textContent = '';
    this.#view.log.removeAttribute('aria-busy');
    this.#view.log.scrollTop = this.#view.log.scrollHeight;
    this.#swap(this.#view.stop, this.#view.ask);
  }

  /** Puts one button in another's place, and the focus with it. */
  #swap(from, to) {
    const focused = this.#view.root.activeElement === from;
    to.hidden = false;
    if (focused) to.focus();
    from.hidden = true;
  }

  #progress({ stage, done = 0, total = 0, note }) {
    this.#show(STAGES[stage] ?? stage, figures({ stage, done, total, note }), done, total);
  }

  /** A state of the work: a sentence that is announced, figures that are not, a bar that runs where nothing is known. */
  #show(sentence, detail, done = 0, total = 0) {
    const { status, figures: line, progress } = this.#view;
    if (status.textContent !== sentence) status.textContent = sentence;
    line.textContent = detail;
    if (done > 0 && total > 1) {
      progress.max = total;
      progress.value = done;
    } else progress.removeAttribute('value');
  }

  #write(answer, text) {
    const { log } = this.#view;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    if (!this.#running.signal.aborted) this.#show('Answering', '');
    answer.appendData(text);
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #fail(error, turn, question) {
    const { alert, question: field } = this.#view;
    const stopped = ['StoppedError', 'AbortError'].includes(error.name);
    turn.note.textContent = stopped ? 'Stopped' : 'Not answered';
    if (!field.value) field.value = question;
    if (!OF_THE_QUESTION.has(error.name)) {
      this.#assistant?.close();
      this.#assistant = null;
    }
    if (stopped) return;
    alert.append(
      element('p', {}, element('strong', {}, error.message), ' ', error.remedy ?? ''),
      element('p', { class: 'name' }, error.name),
    );
  }
}

const tag = [...document.scripts].find(({ src }) => src === import.meta.url);
if (tag) {
  const { model, context } = tag.dataset;
  attachPanel({ model, context: context ? Number(context) : undefined });
}
