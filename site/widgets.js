/** Small parts that the panel and the chat page share: elements, a meter of progress, an error in words. */

/** Makes an element; strings among the children become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Puts one button in another's place, and the focus with it. */
export function swap(from, to) {
  const focused = from.getRootNode().activeElement === from;
  to.hidden = false;
  if (focused) to.focus();
  from.hidden = true;
}

const inUnit = (bytes) => (bytes < 1e9 ? [1e6, 1, 'MB'] : [1e9, 2, 'GB']);

/** A number of bytes in words. */
export function inWords(bytes) {
  const [unit, digits, name] = inUnit(bytes);
  return `${(bytes / unit).toFixed(digits)} ${name}`;
}

function timeLeft(seconds) {
  if (seconds === undefined || seconds === null) return '';
  if (seconds < 90) return `, about ${Math.max(1, Math.ceil(seconds))} s left`;
  return seconds < 5400 ? `, about ${Math.round(seconds / 60)} min left` : `, about ${Math.round(seconds / 3600)} h left`;
}

/** What a state of progress says beside its sentence. */
function figures({ stage, done, total, note, left }) {
  if (stage === 'model' && total) {
    const [unit, digits] = inUnit(total);
    const percent = Math.floor((100 * done) / total);
    return `${(done / unit).toFixed(digits)} of ${inWords(total)} (${percent}%)${timeLeft(left)}`;
  }
  if (stage === 'prefill' && total) return `${done} of ${total} tokens`;
  return note ?? '';
}

/** A state of the work: a sentence that is announced, figures that are not, a bar that runs where nothing is known. */
export class Meter {
  #sentences;
  #status = element('span', { role: 'status' });
  #figures = element('span', { class: 'figures' });
  #bar = element('progress', { 'aria-label': 'Progress' });

  /** @param {Object<string, string>} [sentences] by stage, where they differ from the usual ones */
  constructor(sentences) {
    this.#sentences = {
      runtime: 'Starting the runtime',
      model: 'Loading the model',
      kernels: 'Preparing the GPU',
      prefill: 'Reading the question',
      ...sentences,
    };
    this.element = element('div', {}, element('p', {}, this.#status, ' ', this.#figures), this.#bar);
    this.hide();
  }

  /** @param {{stage: string, done?: number, total?: number, note?: string, left?: number}} progress */
  show(progress) {
    const { stage, done = 0, total = 0 } = progress;
    this.say(this.#sentences[stage] ?? stage, figures(progress));
    if (done > 0 && total > 1) {
      this.#bar.max = total;
      this.#bar.value = done;
    }
  }

  say(sentence, detail = '') {
    this.element.className = 'meter';
    if (this.#status.textContent !== sentence) this.#status.textContent = sentence;
    this.#figures.textContent = detail;
    this.#bar.removeAttribute('value');
    this.#bar.hidden = false;
  }

  /** Out of sight but in the accessibility tree: a status that appears with its text isn't announced everywhere. */
  hide() {
    this.element.className = 'meter unseen';
    this.#status.textContent = this.#figures.textContent = '';
    this.#bar.hidden = true;
  }
}

/** Errors after which the same again may do. */
const TRANSIENT = new Set([
  ...['DeviceLostError', 'EmptyPageError', 'GPUOutOfMemoryError', 'IntegrityError', 'NetworkError', 'NoAdapterError'],
  'PywebError',
]);

/** Whether an error only says that the visitor wanted it so. */
export const isStop = ({ name }) => name === 'StoppedError' || name === 'AbortError';

/**
 * Says in an alert what is wrong, what helps and the error's name.
 * @param {HTMLElement} alert
 * @param {Error & {remedy?: string}} error
 * @param {() => void} again tries the same once more
 */
export function complain(alert, error, again) {
  const sentence = element('p', {}, element('strong', {}, error.message), ' ', error.remedy ?? '');
  alert.replaceChildren(sentence, element('p', { class: 'name' }, error.name));
  if (!TRANSIENT.has(error.name)) return;
  const retry = element('button', { type: 'button', class: 'retry' }, 'Try again');
  retry.onclick = again;
  alert.append(retry);
}
