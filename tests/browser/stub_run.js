/**
 * Stands in for `Assistant.load` in tests of the inspector: a recorded run of four steps, no worker, no model.
 *
 * Prompt: 1 10 11 12 13 14 2. Reply: 10 11 12 | 13 14 10 | 11 | 12, ended by a stop token that isn't among the tokens.
 * A question that says `forever` goes on until it is stopped.
 */
const TEXT = { 10: ' the', 11: ' lamp', 12: ' <b>', 13: '\n', 14: ' was', 20: ' a', 21: ' ship', 30: ' old' };
const token = (id) => ({ id, text: TEXT[id] });
const node = (id, parent) => ({ ...token(id), parent });

const STEPS = [
  { record: [3, 1, 8], tokens: [10, 11, 12], tree: [[12, -1], [13, 0], [20, 0], [14, 1], [21, 2], [10, 3], [30, 3]] },
  { record: [3, 3, 4], tokens: [13, 14, 10], tree: [[10, -1], [20, 0], [11, 0], [12, 2], [13, 3]] },
  { record: [1, 3, 2], tokens: [11], tree: [[11, -1], [12, 0], [13, 1]] },
  { record: [2, 3, 8], tokens: [12], tree: [] },
].map(({ record, tokens, tree }) => ({ record, tokens: tokens.map(token), tree: tree.map((pair) => node(...pair)) }));

const REPLY = STEPS.flatMap(({ tokens }) => tokens.map(({ id }) => id));
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

window.stubCalls = { load: [], ask: [], measured: 0, closed: 0 };

window.stubLoad = async ({ model, memory, onProgress }) => {
  window.stubCalls.load.push({ model, memory });
  const failure = { name: 'ModelFileError', remedy: 'Try another.' };
  if (model === 'broken') throw Object.assign(new Error('No <i>GGUF</i> file.'), failure);
  onProgress({ stage: 'model', done: 1, total: 2, note: '' });
  return {
    loaded: { calibration: null },
    ask,
    recalibrate: async () => {
      window.stubCalls.measured++;
      return { costs: { 1: 10, 2: 10.5, 4: 11, 8: 12, 16: 18, 32: 32 }, window: 1 };
    },
    close: () => window.stubCalls.closed++,
  };
};

async function ask(question, { onStep, onProgress, signal, text, page, mode, maxTokens }) {
  window.stubCalls.ask.push({ question, text, title: page?.title, mode, maxTokens });
  onProgress({ stage: 'prefill', done: 1, total: 2, note: '' });
  const forever = question === 'forever';
  for (const step of STEPS) {
    await pause(20);
    onStep(step);
  }
  while (forever && !signal.aborted) {
    await pause(20);
    onStep({ ...STEPS[2], record: [1, 0, 1], tree: [] });
  }
  return {
    prompt_ids: [1, 10, 11, 12, 13, 14, 2],
    reply_ids: REPLY,
    times: { decode: 0.1 },
    finish_reason: forever ? 'cancelled' : 'stop',
    adapter: 'stub adapter',
  };
}
