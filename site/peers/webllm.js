/** TVM's WebGPU runtime: https://github.com/mlc-ai/web-llm. Its model library is compiled for each shape. */
import { calls, countCalls } from './gpu_calls.js';

const PACKAGE = new URL('../packages/webllm/', import.meta.url);
const ID = 'model';

/** @param {{lib: string, weights: string, context: number, say: (what: string) => void}} options absolute URLs */
export async function open({ lib, weights, context, say }) {
  countCalls();
  const { CreateMLCEngine } = await import(`${PACKAGE}index.js`);
  const overrides = { context_window_size: context };
  const engine = await CreateMLCEngine(ID, {
    appConfig: { model_list: [{ model: weights, model_id: ID, model_lib: lib, overrides }] },
    initProgressCallback: ({ text }) => say(text),
  });
  let perToken = 0;
  return {
    async reply(prompt, tokens) {
      await engine.resetChat();
      const before = calls.dispatches;
      const start = performance.now();
      const settings = { temperature: 0, ignore_eos: true, stream: true, stream_options: { include_usage: true } };
      const chunks = await engine.completions.create({ prompt, max_tokens: tokens, ...settings });
      let firstMs = 0;
      let usage;
      for await (const chunk of chunks) {
        if (chunk.choices.length) firstMs ||= performance.now() - start;
        usage = chunk.usage ?? usage;
      }
      const wall = performance.now() - start;
      const { prompt_tokens: promptTokens, completion_tokens: written } = usage;
      perToken = (calls.dispatches - before) / written;
      return { promptTokens, tokens: written, firstMs, decodeMs: (wall - firstMs) / Math.max(1, written - 1) };
    },
    backend: () => (perToken > 1 ? 'webgpu' : 'cpu'),
    notes: () => [`${Math.round(perToken)} dispatches a token.`],
    close: () => engine.unload(),
  };
}
