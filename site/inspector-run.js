/** What the steps of a run say: which nodes were accepted, what was to be expected, where guesses came from. */

const LONGEST_MATCH = 8; // tokens of context that the drafter looks at

/** Where a guess can come from: its letter in the tree and its name in tables. */
export const SOURCES = {
  page: { letter: 'P', name: 'page or question' },
  reply: { letter: 'R', name: 'reply' },
  memory: { letter: 'M', name: 'earlier replies' },
  guess: { letter: 'G', name: 'frequent token' },
  unknown: { letter: '?', name: 'known at the end' },
};

/** One run, step by step. */
export class Run {
  /** Entries with number, width, matchLength, emitted, accepted, expected, tokens, start, tree, path, time. */
  steps = [];
  #reply = [];
  #tree = null;
  #seen = new Map(); // match length: steps and accepted guesses
  #prompt = null;
  #memory;
  #decode = 0;

  /** @param {number[]} memory ids of earlier replies that drafts may be copied from */
  constructor(memory = []) {
    this.#memory = memory;
  }

  /**
   * Takes the next step, or before the first one its tree.
   * @param {import('./js_bridge/client.js').Step} step
   * @param {number} time milliseconds
   */
  add({ record, tokens, tree }, time = performance.now()) {
    if (record) this.#step(record, tokens, time);
    this.#tree = tree.length ? tree : null;
  }

  #step([emitted, matchLength, width], tokens, time) {
    const accepted = Math.max(emitted - 1, 0);
    const guessed = tokens.slice(0, accepted);
    const own = this.#tree ?? chain(guessed);
    const seen = this.#seen.get(matchLength) ?? { steps: 0, accepted: 0 };
    this.steps.push({
      number: this.steps.length + 1,
      width,
      matchLength,
      emitted,
      accepted,
      expected: width > 1 && seen.steps ? seen.accepted / seen.steps : null,
      tokens,
      start: this.#reply.length,
      tree: own,
      reported: this.#tree !== null,
      path: acceptedPath(own, guessed, this.#tree ? width : own.length),
      time,
    });
    // A step of one node checks no guess, so it says nothing about them.
    if (width > 1) this.#seen.set(matchLength, { steps: seen.steps + 1, accepted: seen.accepted + accepted });
    this.#reply.push(...tokens.map(({ id }) => id));
  }

  /**
   * The run has ended: now the prompt's ids are known.
   * @param {import('./js_bridge/client.js').Reply} reply
   */
  finish({ prompt_ids: prompt, times }) {
    this.#prompt = prompt;
    this.#decode = 1000 * times.decode;
  }

  /**
   * The nodes of a step's tree.
   * @param {number} index of the step
   * @returns {{id: number, text: string, parent: number, state: string, source: string | null}[]} state is `last`,
   *   `accepted`, `rejected` or `waiting` (beyond the width)
   */
  nodes(index) {
    const { tree, path, width, reported } = this.steps[index];
    return tree.map((node, number) => {
      const checked = !reported || number < width;
      const state = path.includes(number) ? 'accepted' : checked ? 'rejected' : 'waiting';
      return { ...node, state: number ? state : 'last', source: number ? this.#source(index, number) : null };
    });
  }

  /** Tokens, steps, tokens per step and, once there are two steps, milliseconds per token behind the first step. */
  totals() {
    const tokens = this.#reply.length;
    const steps = this.steps.length;
    const behind = tokens - (this.steps[0]?.tokens.length ?? 0);
    const time = this.#decode || (this.steps.at(-1)?.time ?? 0) - (this.steps[0]?.time ?? 0);
    return { tokens, steps, rate: steps ? tokens / steps : null, pace: behind > 0 ? time / behind : null };
  }

  /** How many accepted guesses came from each source; null before the end. */
  origins() {
    if (!this.#prompt) return null;
    const counts = {};
    this.steps.forEach(({ path }, index) => {
      for (const number of path) {
        const source = this.#source(index, number);
        counts[source] = (counts[source] ?? 0) + 1;
      }
    });
    return counts;
  }

  /** The text that most of a node's path, with what stood before, was found in. */
  #source(index, number) {
    const { tree, start } = this.steps[index];
    const path = [];
    for (let at = number; at > 0; at = tree[at].parent) path.unshift(tree[at].id);
    const prompt = this.#prompt ?? [];
    const text = [...prompt, ...this.#reply.slice(0, start)];
    const target = path.pop();
    const before = [...text, ...path].slice(-LONGEST_MATCH);
    const own = longestMatch(text, before, target);
    if (!this.#prompt) return own.length ? 'reply' : 'unknown';
    if (longestMatch(this.#memory, before, target).length > own.length) return 'memory';
    if (!own.length) return 'guess';
    return own.at < prompt.length ? 'page' : 'reply';
  }
}

/** A tree that isn't reported; what is known of it is the accepted path. */
function chain(guessed) {
  const last = { id: -1, text: 'end of the prompt', parent: -1 };
  return [last, ...guessed.map((token, parent) => ({ ...token, parent }))];
}

/** Numbers of the nodes that the step walked along, node 0 left out. */
function acceptedPath(tree, guessed, width) {
  const path = [];
  let last = 0;
  for (const { id } of guessed) {
    last = tree.findIndex((node, number) => number > 0 && number < width && node.parent === last && node.id === id);
    if (last < 0) break;
    path.push(last);
  }
  return path;
}

/** The occurrence of `target` with the most tokens of `before` before it, the latest of equals. */
function longestMatch(text, before, target) {
  const best = { length: 0, at: -1 };
  for (let at = text.length - 1; at > 0; at--) {
    if (text[at] !== target) continue;
    const most = Math.min(before.length, at);
    let length = 0;
    while (length < most && text[at - 1 - length] === before.at(-1 - length)) length++;
    if (length > best.length) Object.assign(best, { length, at });
  }
  return best;
}
