/**
 * Stands in for `Assistant.load` in tests of the panel: same promises and callbacks, no worker, no model.
 *
 * The question says what happens: `forever` streams until it is stopped, `too long` fails for the question's sake,
 * `lost` fails with the device; anything else is answered with `ANSWER`. A model named `broken` doesn't load.
 */
const ANSWER = ['Every evening ', 'the keeper <b>lit</b> ', 'the lamp ', '&amp; wrote.'];

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const failure = (name, message, remedy) => Object.assign(new Error(message), { name, remedy });
const result = (tokens, finish_reason) => ({
  reply_ids: Array(tokens).fill(7),
  tokens_per_second: 41.27,
  adapter: 'stub adapter',
  finish_reason,
});

window.stubCalls = { load: [], ask: [], closed: 0 };

window.stubLoad = async ({ model, context, onProgress, signal }) => {
  window.stubCalls.load.push({ model, context });
  onProgress({ stage: 'runtime', done: 2, total: 3, note: 'pyweb' });
  await pause(10);
  if (model === 'broken') throw failure('ModelFileError', 'The file is no GGUF file.', 'Choose another model.');
  onProgress({ stage: 'model', done: 45_100_000, total: 98_400_000, note: '' });
  while (model === 'slow' && !signal.aborted) await pause(10);
  if (signal.aborted) throw failure('StoppedError', 'The assistant was closed.', '');
  onProgress({ stage: 'kernels', done: 0, total: 1, note: '' });
  await pause(10);
  return { ask, close: () => window.stubCalls.closed++ };
};

async function ask(question, { onText, onProgress, signal }) {
  window.stubCalls.ask.push(question);
  onProgress({ stage: 'prefill', done: 128, total: 310, note: '' });
  await pause(10);
  if (question === 'too long') {
    throw failure('PromptTooLongError', 'The prompt has 5000 tokens, the context holds 4096.', 'Ask a shorter question.');
  }
  if (question === 'lost') throw failure('DeviceLostError', 'The GPU device went away.', 'Load the model again.');
  if (question === 'forever') {
    for (let count = 1; ; count++) {
      if (signal.aborted) return result(count, 'cancelled');
      onText('la ');
      await pause(20);
    }
  }
  for (const piece of ANSWER) {
    onText(piece);
    await pause(10);
  }
  return result(ANSWER.length, 'stop');
}
