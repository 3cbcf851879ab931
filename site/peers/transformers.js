/** ONNX Runtime Web by way of transformers.js: https://github.com/huggingface/transformers.js */
import { calls, countCalls } from './gpu_calls.js';

const PACKAGE = new URL('../packages/transformers/', import.meta.url);

/** The best of a model's files for a device. */
function chosen(dtypes, f16) {
  const dtype = ['q4f16', 'q4'].find((name) => dtypes.includes(name) && (f16 || name !== 'q4f16'));
  if (dtype) return dtype;
  const [message, remedy] = ['This ONNX model needs shader-f16, which this device lacks.', 'Make one with --f32.'];
  throw Object.assign(new Error(message), { name: 'UsageError', remedy });
}

/**
 * @param {{onnx: string, dtypes: string[], f16: boolean, say: (what: string) => void}} options `onnx`: path of the model's
 *   folder on the site; `dtypes`: what it holds; `f16`: the device has shader-f16
 */
export async function open({ onnx, dtypes, f16, say }) {
  const dtype = chosen(dtypes, f16);
  countCalls();
  const { AutoModelForCausalLM, AutoTokenizer, env, TextStreamer } = await import(`${PACKAGE}transformers.min.js`);
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.useBrowserCache = env.useWasmCache = false;
  env.localModelPath = './';
  env.backends.onnx.wasm.wasmPaths = PACKAGE.href;
  say('Loading the model');
  const tokenizer = await AutoTokenizer.from_pretrained(onnx);
  const model = await AutoModelForCausalLM.from_pretrained(onnx, { dtype, device: 'webgpu' });
  let perToken = 0;
  return {
    async reply(text, tokens) {
      const inputs = await tokenizer(text);
      const promptTokens = inputs.input_ids.dims.at(-1);
      const times = [];
      const streamer = new TextStreamer(tokenizer, {
        skip_prompt: true,
        callback_function: () => {},
        token_callback_function: () => times.push(performance.now()),
      });
      const before = calls.dispatches;
      const start = performance.now();
      await model.generate({ ...inputs, max_new_tokens: tokens, min_new_tokens: tokens, do_sample: false, streamer });
      const end = performance.now();
      perToken = (calls.dispatches - before) / tokens;
      // The prompt comes first, in one call, where the streamer is told of it at all.
      const [first] = times.slice(-tokens);
      return { promptTokens, tokens, firstMs: first - start, decodeMs: (end - first) / Math.max(1, tokens - 1) };
    },
    backend: () => (perToken > 1 ? 'webgpu' : 'cpu'),
    notes: () => [`${dtype}, ${Math.round(perToken)} dispatches a token.`],
    close: () => model.dispose(),
  };
}
