/**
 * Stands in for `Assistant.load` in tests of the panel and the chat page: same promises and callbacks, no worker, no
 * model.
 *
 * The question says what happens: `forever` streams until it is stopped, `too long` fails for the question's sake,
 * `lost` fails with the device, `offline` once with the network; `attack` is answered with markup, anything else with
 * `ANSWER`. A model that is named `broken` doesn't load, `slow` only loads until it is stopped, `no-gpu` finds none.
 */
const ANSWER = ['Every evening ', 'the keeper <b>lit</b> ', 'the lamp ', '&amp; wrote.'];
const ATTACK = ['<img src=x onerror="window.', 'attacked = true">', '<script>window.attacked = true</script>'];
const NOTE = 'The model file brings no chat template, so a plain one is used.';

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const failure = (name, message, remedy) => Object.assign(new Error(message), { name, remedy });
const result = (turn, tokens, finish_reason, material) => ({
  prompt_ids: Array(310).fill(7),
  reply_ids: Array(tokens).fill(7),
  tokens_per_second: 41.27,
  reused: turn > 1 ? 272 : 0,
  adapter: 'stub adapter',
  finish_reason,
  material,
  notes: [NOTE],
  warning: '',
});

window.stubCalls = { load: [], chat: [], ended: 0, ask: [], closed: 0, forgotten: 0 };

window.stubLoad = async ({ model, context, memory, onProgress, signal }) => {
  window.stubCalls.load.push({ model, context, ...(memory && { memory }) });
  const name = model.name ?? model;
  onProgress({ stage: 'runtime', done: 2, total: 3, note: 'pyweb' });
  await pause(10);
  if (/broken/.test(name)) throw failure('ModelFileError', 'The file is no <i>GGUF</i> file.', 'Choose another model.');
  if (/no-gpu/.test(name)) throw failure('NoWebGPUError', 'This browser offers no WebGPU here.', 'Use a current Chrome.');
  onProgress({ stage: 'model', done: 45_100_000, total: 98_400_000, note: '', left: 41.3 });
  while (/slow/.test(name) && !signal.aborted) await pause(10);
  if (signal.aborted) throw failure('StoppedError', 'The assistant was closed.', '');
  onProgress({ stage: 'kernels', done: 0, total: 1, note: '' });
  await pause(10);
  const gpu_bytes = { weights: 104_000_000, kv_cache: 94_400_000 };
  return {
    loaded: { context: 4096, gpu_bytes, adapter: 'stub adapter', not_kept: '', notes: [NOTE], warning: '' },
    chat,
    forget: async () => window.stubCalls.forgotten++,
    close: () => window.stubCalls.closed++,
  };
};

function chat({ page, system }) {
  window.stubCalls.chat.push({ title: page?.title ?? null, selection: page?.selection, system });
  let turn = 0;
  return {
    ask: async (question, options) => answer(question, ++turn, page ? `# ${page.title}\n\n<b>Ailsa</b> Munro` : '', options),
    close: async () => window.stubCalls.ended++,
  };
}

async function answer(question, turn, material, { onText, onProgress, signal, selection, maxTokens, sampling }) {
  window.stubCalls.ask.push({ question, turn, selection, maxTokens, sampling });
  onProgress({ stage: 'prefill', done: 128, total: 310, note: '' });
  await pause(10);
  if (question === 'too long') {
    throw failure('PromptTooLongError', 'The prompt has 5000 tokens, the context holds 4096.', 'Ask a shorter question.');
  }
  if (question === 'lost') throw failure('DeviceLostError', 'The GPU device went away.', 'Load the model again.');
  if (question === 'offline' && !window.stubOnline) {
    window.stubOnline = true;
    throw failure('NetworkError', 'The download broke off.', 'Try again.');
  }
  if (question === 'forever') {
    for (let count = 1; ; count++) {
      if (signal.aborted) return result(turn, count, 'cancelled', material);
      onText('la ');
      await pause(20);
    }
  }
  const pieces = question === 'attack' ? ATTACK : ANSWER;
  for (const piece of pieces) {
    onText(piece);
    await pause(10);
  }
  return result(turn, pieces.length, 'stop', material);
}
