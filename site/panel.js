/**
 * The assistant panel: one script tag adds it to a page.
 *
 *   <script type="module" src="panel.js" data-model="smollm2-135m-instruct" data-context="4096"></script>
 *
 * `data-model` is a short name out of `models/index.json` or the URL of a GGUF file, `data-context` the tokens of
 * context, `data-theme` the panel's looks: `light`, `system` (light or dark as the visitor's system is) or `auto`:
 * `system` where the page declares a dark `color-scheme`, `light` elsewhere. All may be left out. Nothing is downloaded
 * before the visitor asks. The panel stands in a shadow root below an element with `data-pyweb`, which the snapshot of
 * the page leaves out.
 */
import { Conversation } from './conversation.js';
import { Assistant } from './js_bridge/client.js';
import { snapshot } from './js_bridge/snapshot.js';
import { element } from './widgets.js';

const DEFAULT_MODEL = 'smollm2-135m-instruct';
const MAX_SELECTION = 20_000;

/**
 * Adds a panel to this page.
 * @param {object} [options]
 * @param {string} [options.model] short name or URL
 * @param {number} [options.context] tokens of context
 * @param {string} [options.theme] `light`, `system` or `auto`
 * @param {typeof Assistant.load} [options.load] how an assistant is made
 * @returns {HTMLElement} the panel's host; removing it removes the panel
 */
export function attachPanel({ model = DEFAULT_MODEL, context, theme = 'auto', load = Assistant.load } = {}) {
  const looks = theme === 'auto' ? pageTheme() : theme;
  const host = element('div', { 'data-pyweb': '', 'data-theme': looks });
  new Panel(host, model.split('/').at(-1), (handlers) => load({ model, context, ...handlers }));
  document.body.append(host);
  return host;
}

/** What the page declares: its root's scheme, or the meta element's where the root has none. */
function pageTheme() {
  const declared = getComputedStyle(document.documentElement).colorScheme;
  const meta = document.querySelector('meta[name="color-scheme" i]')?.content ?? '';
  return /\bdark\b/i.test(declared === 'normal' ? meta : declared) ? 'system' : 'light';
}

/** What is selected on the page, but for what is selected in a form field. */
function selected() {
  const field = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '');
  return field ? '' : String(document.getSelection()).trim().slice(0, MAX_SELECTION);
}

function intro(name) {
  return element(
    'p',
    { class: 'intro' },
    `${name} answers from this page, on this device. The page, your questions and the answers never leave it. `,
    'The first question downloads the model; the browser keeps it where it has room. A small model can be wrong.',
  );
}

/** A button that opens a dialog with a conversation about the page. */
class Panel {
  #host;
  #load;
  #assistant = null;
  #conversation;
  #launcher = element('button', { type: 'button', class: 'launcher', 'aria-haspopup': 'dialog' }, 'Ask this page');
  #dialog;

  constructor(host, modelName, load) {
    this.#host = host;
    this.#load = load;
    const hooks = {
      begin: (handlers) => this.#begin(handlers),
      about: () => location.href.replace(/#.*/, ''),
      broken: () => this.#drop(),
    };
    const looks = { intro: intro(modelName), sentences: { prefill: 'Reading the page' } };
    this.#conversation = new Conversation(hooks, looks);
    this.#build(host.attachShadow({ mode: 'open' }));
  }

  /** Everything stays hidden until its style is there. */
  #build(root) {
    const close = element('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '×');
    this.#dialog = element(
      'dialog',
      { 'aria-labelledby': 'title', lang: 'en', dir: 'ltr', tabindex: '-1' }, // a click inside leaves the page's selection
      element('header', {}, element('h2', { id: 'title' }, 'Ask this page'), close),
      this.#conversation.element,
    );
    const frame = element('div', { hidden: '' }, this.#launcher, this.#dialog);
    const style = element('link', { rel: 'stylesheet', href: new URL('./panel.css', import.meta.url).href });
    style.onload = style.onerror = () => (frame.hidden = false);
    root.append(style, frame);
    this.#launcher.onclick = () => this.#open();
    close.onclick = () => this.#close();
    // Typing here must not trigger the page's keyboard shortcuts.
    for (const kind of ['keydown', 'keypress', 'keyup']) {
      this.#dialog.addEventListener(kind, (event) => event.stopPropagation());
    }
    this.#dialog.addEventListener('keydown', ({ key, isComposing }) => {
      if (key === 'Escape' && !isComposing && !this.#conversation.halt()) this.#close();
    });
  }

  /** Focus inside the panel takes the selection away from the page, but not from the question. */
  #onSelection = () => {
    if (!this.#host.isConnected) document.removeEventListener('selectionchange', this.#onSelection);
    else if (document.activeElement !== this.#host) this.#conversation.select(selected());
  };

  #open() {
    this.#conversation.select(selected());
    document.addEventListener('selectionchange', this.#onSelection);
    this.#dialog.show();
    this.#launcher.hidden = true;
    this.#conversation.question.focus();
  }

  #close() {
    document.removeEventListener('selectionchange', this.#onSelection);
    this.#dialog.close();
    this.#launcher.hidden = false;
    this.#launcher.focus();
  }

  /** The page as it is now, whatever loading the model takes. */
  async #begin({ signal, onProgress }) {
    const page = { ...snapshot(document), selection: '' }; // goes with the question
    if (!this.#assistant) onProgress({ stage: 'runtime' });
    this.#assistant ??= await this.#load({ signal, onProgress });
    return this.#assistant.chat({ page });
  }

  #drop() {
    this.#assistant?.close();
    this.#assistant = null;
  }
}

const tag = [...document.scripts].find(({ src }) => src === import.meta.url);
if (tag) {
  const { model, context, theme } = tag.dataset;
  attachPanel({ model, context: context ? Number(context) : undefined, theme });
}
