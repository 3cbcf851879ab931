/** pyweb itself, through the same public API as any page. */
import { Assistant } from '../js_bridge/client.js';

const MATERIAL = { page: null, system: '' };

/**
 * Milliseconds a token in the whole windows behind the first, which the prefill is part of; null where there are none.
 * @param {import('../js_bridge/client.js').Reply} reply
 */
export function pace({ windows, records }) {
  const whole = Math.max(...windows.map(([, steps]) => steps));
  let tokens = 0;
  let seconds = 0;
  let step = 0;
  for (const [number, [, steps, taken]] of windows.entries()) {
    const emitted = records.slice(step, step + steps).reduce((sum, [count]) => sum + count, 0);
    step += steps;
    if (number === 0 || steps < whole) continue;
    tokens += emitted;
    seconds += taken;
  }
  return tokens ? (1000 * seconds) / tokens : null;
}

/** @param {{model?: string, shape?: string, mode: string, context: number, say: (what: string) => void}} options */
export async function open({ model, shape, mode, context, say }) {
  const assistant = await Assistant.load({
    model: shape ? { shape } : model,
    context,
    onProgress: ({ stage, note }) => say(`Loading: ${note || stage}`),
  });
  let perStep = 0;
  return {
    async reply(text, tokens) {
      const start = performance.now();
      const reply = await assistant.ask(text, { ...MATERIAL, mode, maxTokens: tokens, reuse: false });
      const { times, reply_ids: ids, prompt_ids: prompt } = reply;
      perStep = ids.length / Math.max(1, reply.steps);
      const firstMs = performance.now() - start - 1000 * times.decode;
      return { promptTokens: prompt.length, tokens: ids.length, firstMs, decodeMs: pace(reply) };
    },
    backend: () => 'webgpu',
    notes: () => [`${perStep.toFixed(2)} tokens a step.`],
    close: () => assistant.close(),
  };
}
