/** llama.cpp in WebAssembly with its WebGPU backend: https://github.com/ngxson/wllama */

const PACKAGE = new URL('../packages/wllama/', import.meta.url);
const ALL_LAYERS = 99999;
const LAST = 3; // lines of the log that an error quotes

/** @param {{blob: () => Promise<Blob>, context: number, say: (what: string) => void}} options */
export async function open({ blob, context, say }) {
  const { Wllama, LogLevel } = await import(`${PACKAGE}index.js`);
  const log = [];
  const keep = (...values) => log.push(values.map(String).join(' '));
  const engine = new Wllama(
    { default: `${PACKAGE}wllama.wasm` },
    { logger: { debug: keep, log: keep, warn: keep, error: keep } },
  );
  say('Loading the model');
  const settings = { n_ctx: context, n_parallel: 1, n_gpu_layers: ALL_LAYERS, log_level: LogLevel.DEBUG };
  await engine.loadModel([await blob()], settings).catch((error) => {
    // What is wrong with a model stands in the log, not in the error.
    throw new Error(`wllama could not load the model: ${error.message}. ${log.slice(-LAST).join(' ')}`);
  });
  const placed = placement(log);
  return {
    async reply(prompt, tokens) {
      const start = performance.now();
      const greedy = { temperature: 0, top_k: 1, cache_prompt: false, ignore_eos: true, stream: false };
      const { usage, timings } = await engine.createCompletion({ prompt, max_tokens: tokens, ...greedy });
      const firstMs = performance.now() - start - timings.predicted_ms;
      const decodeMs = timings.predicted_ms / Math.max(1, timings.predicted_n - 1);
      if (timings.cache_n) throw new Error(`wllama took ${timings.cache_n} tokens out of its prompt cache.`);
      return { promptTokens: usage.prompt_tokens, tokens: timings.predicted_n, firstMs, decodeMs };
    },
    backend: () => placed.backend,
    notes: () => [placed.note],
    close: () => engine.exit(),
  };
}

/**
 * Where the layers are, out of llama.cpp's log: without what it needs of the GPU it takes the CPU and says it nowhere else.
 * @param {string[]} log
 */
export function placement(log) {
  const text = log.join('\n');
  const devices = [...text.matchAll(/layer\s+\d+ assigned to device (\w+)/g)].map((found) => found[1]);
  const onGPU = devices.filter((device) => device.startsWith('WebGPU')).length;
  if (!devices.length) return { backend: 'cpu', note: 'Its log names no layer on WebGPU.' };
  const backend = onGPU === devices.length ? 'webgpu' : onGPU ? 'mixed' : 'cpu';
  return { backend, note: `${onGPU} of ${devices.length} layers on WebGPU.` };
}
