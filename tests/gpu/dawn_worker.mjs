/**
 * The bridge in node: one JSON request a line on stdin, one JSON answer a line on stdout.
 * Bytes travel as base64. Usage: node dawn_worker.mjs PATH_OF_WEBGPU_PACKAGE
 */
import readline from 'node:readline';
import fs from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { open } from '../../js_bridge/gpu.js';
import { Source, load } from '../../js_bridge/weights.js';

const { create, globals } = await import(pathToFileURL(process.argv[2]));
Object.assign(globalThis, globals);
const gpu = create(['backend=vulkan']); // kept: Dawn crashes once its instance is collected
const bridge = await open(gpu);
const sources = new Map();

const bytesOf = (text) => new Uint8Array(Buffer.from(text, 'base64'));
const textOf = (bytes) => Buffer.from(bytes).toString('base64');

/** A model file on disk with the interface of a network range reader. */
async function fileSource(path) {
  if (!sources.has(path)) {
    const handle = await fs.open(path);
    const { size } = await handle.stat();
    const fetchRange = async (offset, length) => {
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, offset);
      return new Uint8Array(buffer.buffer, buffer.byteOffset, length);
    };
    sources.set(path, new Source({ size, fetchRange }));
  }
  return sources.get(path);
}

const methods = {
  describe: () => ({ info: bridge.info, limits: bridge.limits, features: bridge.features }),
  buffer: (size, label) => bridge.buffer(size, label),
  write: (buffer, offset, data) => bridge.write(buffer, offset, bytesOf(data)),
  destroy: (handle) => bridge.destroy(handle),
  compile: (shaders) => bridge.compile(shaders),
  bind: (pipeline, bindings) => bridge.bind(pipeline, bindings),
  program: (commands) => bridge.program(commands),
  submit: (program, repeats, readbacks) => bridge.submit(program, repeats, readbacks),
  collect: async (ticket) => textOf(await bridge.collect(ticket)),
  time: (program, repeats) => bridge.time(program, repeats),
  counters: () => bridge.counters(),
  size: async (path) => (await fileSource(path)).size,
  read: async (path, offset, length) => textOf(await (await fileSource(path)).read(offset, length)),
  load: async (path, steps) => load(bridge, await fileSource(path), steps, () => {}),
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { method, args } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await methods[method](...args)) ?? null };
  } catch (error) {
    answer = { error: error.name, message: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
process.exit(0);
