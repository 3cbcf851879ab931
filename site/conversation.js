/**
 * A conversation on a page: the turns, what is going on, and the field for the next question. Shared by the panel and
 * the chat page, which say how a conversation begins. Answers are inserted as text.
 */
import { Turn } from './turn.js';
import { complain, element, isStop, Meter, swap } from './widgets.js';

/** Errors that leave the model as it was. */
const OF_THE_QUESTION = new Set(['EmptyPageError', 'PromptTooLongError', 'TemplateError', 'UsageError']);

export class Conversation {
  #hooks;
  #scroller;
  #end = 0; // how far it was scrolled to show the end
  #chat = null;
  #about; // what the chat is about
  #answered = 0; // turns of the chat
  #divide = false; // the next turn knows nothing of those above
  #running = null; // AbortController of the question being answered
  #selection = '';
  #failed = null; // the last turn, where it wasn't answered
  #told;
  #shown; // sentences and material that are on the page already
  #meter;

  /**
   * @param {object} hooks
   * @param {(handlers: {onProgress: Function, signal: AbortSignal}) => Promise<import('./js_bridge/client.js').Chat>}
   *   hooks.begin begins a conversation of the model; called with its first question
   * @param {() => string} [hooks.about] what it is about; where that changes the next question begins another one
   * @param {() => object} [hooks.options] options of a question
   * @param {() => void} [hooks.broken] called after an error that the model doesn't survive
   * @param {object} looks
   * @param {HTMLElement} looks.intro stands in the place of turns until there are some
   * @param {boolean} [looks.wholePage] the page scrolls, not the conversation in a frame
   * @param {Object<string, string>} [looks.sentences] by stage of progress
   * @param {string[]} [looks.told] notes of replies that the page has told elsewhere
   */
  constructor(hooks, { intro, wholePage = false, sentences, told = [] }) {
    this.#hooks = { about: () => '', options: () => ({}), broken: () => {}, ...hooks };
    this.#meter = new Meter(sentences);
    this.intro = intro;
    this.#told = told;
    this.#shown = new Set(told);
    this.#build();
    this.#scroller = wholePage ? document.scrollingElement : this.turns;
    if (!wholePage) this.turns.tabIndex = 0; // scrolls by keyboard
    this.stop.onclick = () => this.halt();
    this.anew.onclick = () => this.clear();
    this.chip.lastChild.onclick = () => {
      this.select('');
      this.question.focus();
    };
    this.form.onsubmit = (event) => {
      event.preventDefault();
      const question = this.question.value.trim();
      if (question && !this.#running) this.#ask(question, this.#selection);
    };
    this.question.onkeydown = (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.form.requestSubmit();
    };
  }

  #build() {
    this.log = element('div', { class: 'log', role: 'log', 'aria-label': 'Questions and answers' });
    this.current = element('div', {}); // joins the log when it is complete: so it's announced once, and whole
    const named = { class: 'turns', role: 'group', 'aria-label': 'Conversation' };
    this.turns = element('div', named, this.intro, this.log, this.current);
    this.alert = element('div', { class: 'alert', role: 'alert' });
    this.chip = element(
      'p',
      { class: 'chip', hidden: '' },
      element('span', { id: 'selection' }),
      element('button', { type: 'button', class: 'plain drop', 'aria-label': 'Leave the selection out' }, '×'),
    );
    const described = { rows: '1', enterkeyhint: 'send', autocomplete: 'off', 'aria-describedby': 'keys selection' };
    this.question = element('textarea', { id: 'question', ...described });
    this.ask = element('button', { type: 'submit', class: 'ask' }, 'Ask');
    this.stop = element('button', { type: 'button', class: 'stop', hidden: '' }, 'Stop');
    this.anew = element('button', { type: 'button', class: 'plain anew', hidden: '' }, 'New conversation');
    this.form = element(
      'form',
      {},
      element('div', { class: 'above' }, element('label', { for: 'question' }, 'Your question'), this.anew),
      element('div', { class: 'row' }, this.question, this.ask, this.stop),
      element('p', { id: 'keys', class: 'unseen' }, 'Enter asks, Shift and Enter begin a line, Escape stops an answer.'),
    );
    const foot = element('div', { class: 'foot' }, this.#meter.element, this.alert, this.chip, this.form);
    this.element = element('div', { class: 'conversation' }, this.turns, foot);
  }

  /** Offers a text that the reader has selected, to be asked about; an empty one withdraws it. */
  select(text) {
    this.#selection = text;
    this.chip.hidden = !text;
    this.chip.firstChild.textContent = text && `Selected: “${text}”`;
  }

  /** Stops the answer; false where there is none. */
  halt() {
    if (!this.#running) return false;
    this.#running.abort();
    this.#meter.say('Stopping');
    return true;
  }

  /** Forgets the conversation, between two questions, and clears the page of it. */
  clear() {
    this.#forget();
    this.#divide = false;
    this.#failed = null;
    this.#shown = new Set(this.#told);
    this.log.replaceChildren();
    this.alert.replaceChildren();
    this.#settle();
    this.question.focus();
  }

  #forget() {
    this.#chat?.close().catch(() => {}); // its assistant may be gone
    this.#chat = null;
    this.#divide ||= this.#answered > 0;
    this.#answered = 0;
  }

  async #ask(question, selection) {
    const { signal } = (this.#running = new AbortController());
    const onProgress = (progress) => {
      if (!signal.aborted) this.#meter.show(progress);
      this.#follow();
    };
    if (this.#chat && this.#about !== this.#hooks.about()) this.#forget();
    const turn = this.#open(question, selection);
    const onText = (text) => this.#write(turn, text, signal);
    try {
      this.#about = this.#hooks.about();
      this.#chat ??= await this.#hooks.begin({ signal, onProgress });
      onProgress({ stage: 'prefill' });
      const options = { ...this.#hooks.options(), selection, signal, onProgress, onText };
      turn.finish(await this.#chat.ask(question, options), this.#shown);
      this.#answered++;
    } catch (error) {
      this.#fail(turn, error);
    }
    this.log.append(turn.element);
    this.#running = null;
    this.#settle();
  }

  #open(question, selection) {
    if (this.#failed?.question === question) this.#failed.element.remove();
    this.#failed = null;
    this.alert.replaceChildren();
    if (this.#divide) this.log.append(element('p', { class: 'divider' }, 'A new conversation begins here.'));
    this.#divide = false;
    const turn = new Turn(question, selection);
    this.current.append(turn.element);
    if (this.question.value.trim() === question) this.question.value = '';
    if (selection === this.#selection) this.select('');
    swap(this.ask, this.stop);
    this.#end = 0;
    this.#settle();
    return turn;
  }

  #write(turn, text, { aborted }) {
    if (!aborted) this.#meter.say('Answering');
    turn.write(text);
    this.#follow();
  }

  /** Scrolls to the end, unless the reader has gone up from there. */
  #follow() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    if (scrollTop < this.#end && scrollHeight - scrollTop - clientHeight > 40) return;
    this.#scroller.scrollTop = scrollHeight;
    this.#end = this.#scroller.scrollTop;
  }

  #fail(turn, error) {
    const stopped = isStop(error);
    turn.fail(stopped ? 'Stopped' : 'Not answered');
    this.#failed = turn;
    if (!this.question.value) {
      this.question.value = turn.question;
      if (!this.#selection) this.select(turn.selection);
    }
    const survived = stopped || OF_THE_QUESTION.has(error.name);
    if (!survived || !this.#answered) this.#forget();
    if (!survived) this.#hooks.broken();
    if (stopped) return;
    complain(this.alert, error, () => {
      this.question.focus();
      this.#ask(turn.question, turn.selection);
    });
  }

  /** Shows what goes with the state: at rest or answering, with turns or without. */
  #settle() {
    const some = Boolean(this.log.childElementCount || this.current.childElementCount);
    this.intro.hidden = some;
    this.anew.hidden = !some || Boolean(this.#running);
    if (!this.#running) {
      this.#meter.hide();
      swap(this.stop, this.ask);
    }
    this.#follow();
  }
}
