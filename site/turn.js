/** A question and its answer on a page. */
import { element } from './widgets.js';

const ENDS = { cancelled: ['Stopped'], length: ['Cut at the length limit'] };

/** How an answer ended and what it took, in a line. */
function statistics({ reply_ids: ids, prompt_ids: prompt, reused, tokens_per_second: rate, adapter, finish_reason: end }) {
  const tokens = `${ids.length} ${ids.length === 1 ? 'token' : 'tokens'}`;
  const speed = ids.length ? [`${rate.toFixed(1)} tokens/s`] : [];
  const known = reused ? [`${reused} of ${prompt.length} prompt tokens reused`] : [];
  return [...(ENDS[end] ?? []), tokens, ...speed, ...known, adapter].join(' · ');
}

export class Turn {
  #answer = document.createTextNode('');
  #note = element('p', { class: 'note', 'aria-live': 'off' });
  #language = document.documentElement.lang;

  /** @param {string} question @param {string} selection what it asks about, where something was selected */
  constructor(question, selection) {
    Object.assign(this, { question, selection });
    const asked = element('p', { class: 'question', dir: 'auto' }, element('span', { class: 'unseen' }, 'You asked: '));
    if (selection) asked.append(element('span', { class: 'quoted' }, `“${selection}”`));
    asked.append(question);
    const answer = element('p', { class: 'answer', dir: 'auto', ...this.#spoken() }, this.#answer);
    this.element = element('div', { class: 'turn' }, asked, answer, this.#note);
  }

  /** Adds a piece of the answer. */
  write(text) {
    this.#answer.appendData(text);
  }

  /**
   * Adds what the reply tells of itself.
   * @param {import('./js_bridge/client.js').Reply} reply
   * @param {Set<string>} shown what earlier turns told; grows
   */
  finish(reply, shown) {
    this.#note.textContent = statistics(reply);
    for (const sentence of [...reply.notes, reply.warning]) {
      if (sentence && !shown.has(sentence)) this.element.append(element('p', { class: 'notice' }, sentence));
      shown.add(sentence);
    }
    for (const text of [reply.material, reply.more]) {
      if (text && !shown.has(text)) this.element.append(this.#read(text));
      shown.add(text);
    }
  }

  /** @param {string} word why there is no answer, or no whole one */
  fail(word) {
    this.#note.textContent = word;
  }

  #read(material) {
    const text = { class: 'material', role: 'group', tabindex: '0', 'aria-label': 'Text', dir: 'auto', ...this.#spoken() };
    return element('details', {}, element('summary', {}, 'What it read from the page'), element('div', text, material));
  }

  #spoken() {
    return this.#language ? { lang: this.#language } : {};
  }
}
