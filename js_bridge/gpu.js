/**
 * The waist between Python and WebGPU: buffers, pipelines, bind groups and programs behind integer handles.
 * It knows nothing of models. A program is a flat list of (pipeline, bind group, x, y, z); a submission runs one
 * `repeats` times and copies ranges to a mapped buffer in the same command buffer.
 *
 * Works in a page, in a worker and in node (npm `webgpu`): the caller may hand in its own `GPU`.
 */

import { BridgeError } from './errors.js';

export { BridgeError };

const WANTED_LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxStorageBuffersPerShaderStage',
];
const KNOWN_LIMITS = [
  ...WANTED_LIMITS,
  'maxComputeWorkgroupsPerDimension',
  'minStorageBufferOffsetAlignment',
  'maxUniformBufferBindingSize',
];
const WANTED_FEATURES = ['subgroups', 'timestamp-query'];
const COMMAND = 5;
const UNIFORM_LIMIT = 65536;
const KEPT = 65536; // bytes of a buffer for read-backs that is used again: a window's, not a check's
const LOSS = 1000; // ms that a failed call waits for the reason why the device was lost

/** A driver's words, which may be lines of text, as one sentence. */
const sentence = (words) => `${words.trim().replace(/\s+/g, ' ').replace(/\.$/, '')}.`;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** requestAdapter() may answer null while the GPU process starts: ask again for three seconds. */
async function findAdapter(gpu) {
  let why = '';
  for (let attempt = 0; attempt < 6; attempt++) {
    if (attempt) await pause(500);
    try {
      const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
      if (adapter) return adapter;
    } catch (error) {
      why = ` (${error.message})`;
    }
  }
  throw new BridgeError('NoAdapterError', `This browser found no graphics adapter for WebGPU${why}.`);
}

async function openDevice(adapter) {
  const requiredLimits = Object.fromEntries(WANTED_LIMITS.map((name) => [name, adapter.limits[name]]));
  const requiredFeatures = WANTED_FEATURES.filter((name) => adapter.features.has(name));
  try {
    return await adapter.requestDevice({ requiredLimits, requiredFeatures });
  } catch (error) {
    const refused = ['OperationError', 'TypeError', 'RangeError'].includes(error.name);
    if (refused) throw new BridgeError('LimitError', `The graphics adapter refuses its own limits (${error.message}).`);
    throw new BridgeError('NoAdapterError', `The graphics adapter gave no device (${error.message}).`);
  }
}

/**
 * Opens the device with the adapter's own limits.
 * @param {GPU} [gpu] defaults to `navigator.gpu`
 * @returns {Promise<Bridge>}
 */
export async function open(gpu = globalThis.navigator?.gpu) {
  if (!gpu) throw new BridgeError('NoWebGPUError', 'This browser offers no WebGPU here.');
  const adapter = await findAdapter(gpu);
  const device = await openDevice(adapter);
  // with both a kernel can tell which threads are of one subgroup
  const subgroups = device.features.has('subgroups') && Boolean(gpu.wgslLanguageFeatures?.has('subgroup_id'));
  return new Bridge(device, adapter.info, subgroups);
}

/** A device and everything made on it. Handles are positions in `objects`; 0 is never one. */
export class Bridge {
  constructor(device, info, subgroups = false) {
    this.device = device;
    this.objects = [null];
    this.tickets = new Map(); // of submissions that nobody has collected yet
    this.lastTicket = 0;
    this.staging = [];
    this.counts = { submits: 0, maps: 0, dispatches: 0, encode_ms: 0, wait_ms: 0 };
    this.clock = null; // of `time`
    this.lostReason = '';
    this.fault = null;
    const { vendor, architecture, device: model, description, subgroupMinSize, subgroupMaxSize } = info;
    this.info = { vendor, architecture, device: model, description, subgroups, subgroupMinSize, subgroupMaxSize };
    this.lost = device.lost.then(({ reason, message }) => (this.lostReason = `${reason}: ${message || 'no message'}`));
    device.onuncapturederror = ({ error }) => {
      const name = error.constructor.name === 'GPUOutOfMemoryError' ? 'GPUOutOfMemoryError' : 'ShaderError';
      this.fault ??= new BridgeError(name, sentence(error.message));
    };
  }

  get limits() {
    return Object.fromEntries(KNOWN_LIMITS.map((name) => [name, this.device.limits[name]]));
  }

  get features() {
    return [...this.device.features];
  }

  #keep(object) {
    return this.objects.push(object) - 1;
  }

  /** Throws what the device reported: that it was lost, or its first fault. */
  check() {
    if (this.lostReason) throw new BridgeError('DeviceLostError', `The GPU device was lost (${this.lostReason}).`);
    if (this.fault) throw this.fault;
  }

  /** Throws that the device was lost, where a call failed because of that; the news may come after the failure. */
  async #checkLoss() {
    await Promise.race([this.lost, pause(LOSS)]);
    if (this.lostReason) this.check();
  }

  /** Bytes of a zeroed buffer; small ones can also be bound as uniforms. */
  async buffer(size, label = '') {
    this.check();
    const { maxBufferSize } = this.device.limits;
    if (size > maxBufferSize) {
      const what = label || 'A buffer';
      throw new BridgeError('LimitError', `${what} needs ${size} bytes; maxBufferSize is ${maxBufferSize}.`);
    }
    const { GPUBufferUsage: usage } = globalThis;
    const flags = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST | (size <= UNIFORM_LIMIT ? usage.UNIFORM : 0);
    this.device.pushErrorScope('out-of-memory');
    const buffer = this.device.createBuffer({ size, label, usage: flags });
    const error = await this.device.popErrorScope().catch(() => null); // rejects where the device is lost meanwhile
    if (error) {
      buffer.destroy();
      throw new BridgeError('GPUOutOfMemoryError', `The GPU has no room for ${size} bytes (${label}).`);
    }
    this.check();
    return this.#keep(buffer);
  }

  write(buffer, offset, bytes) {
    this.check();
    this.device.queue.writeBuffer(this.objects[buffer], offset, bytes);
  }

  /** Frees a buffer, of a lost device too. */
  destroy(handle) {
    this.objects[handle]?.destroy?.();
    this.objects[handle] = null;
  }

  /** Compiles shaders side by side. @param {[string, string][]} shaders pairs of label and WGSL */
  async compile(shaders) {
    this.check();
    const build = async ([label, code]) => {
      const module = this.device.createShaderModule({ label, code });
      try {
        return await this.device.createComputePipelineAsync({ label, layout: 'auto', compute: { module } });
      } catch (error) {
        const { messages } = await module.getCompilationInfo().catch(() => ({ messages: [] }));
        const first = messages.find(({ type }) => type === 'error');
        if (!first) await this.#checkLoss();
        const why = first ? `line ${first.lineNum}: ${first.message}` : error.message;
        throw new BridgeError('ShaderError', sentence(`${label}: ${why}`));
      }
    };
    const pipelines = await Promise.all(shaders.map(build));
    this.check();
    return pipelines.map((pipeline) => this.#keep(pipeline));
  }

  /** @param {number[]} bindings triples of buffer, offset, size, in binding order */
  bind(pipeline, bindings) {
    this.check();
    const entries = [];
    for (let i = 0; i < bindings.length; i += 3) {
      const [buffer, offset, size] = bindings.slice(i, i + 3);
      entries.push({ binding: i / 3, resource: { buffer: this.objects[buffer], offset, size } });
    }
    const layout = this.objects[pipeline].getBindGroupLayout(0);
    return this.#keep(this.device.createBindGroup({ layout, entries }));
  }

  /** @param {ArrayLike<number>} commands pipeline, bind group, x, y, z, again and again */
  program(commands) {
    this.check();
    return this.#keep(Int32Array.from(commands));
  }

  #encode(encoder, commands, repeats, timestampWrites) {
    const pass = encoder.beginComputePass({ timestampWrites });
    const { objects } = this;
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (let i = 0; i < commands.length; i += COMMAND) {
        pass.setPipeline(objects[commands[i]]);
        pass.setBindGroup(0, objects[commands[i + 1]]);
        pass.dispatchWorkgroups(commands[i + 2], commands[i + 3], commands[i + 4]);
      }
    }
    pass.end();
    this.counts.dispatches += (commands.length / COMMAND) * repeats;
  }

  #staged(size) {
    const found = this.staging.findIndex((buffer) => buffer.size >= size);
    if (found >= 0) return this.staging.splice(found, 1)[0]; // all of them are small
    const { GPUBufferUsage: usage } = globalThis;
    return this.device.createBuffer({ size, usage: usage.MAP_READ | usage.COPY_DST, label: 'staging' });
  }

  /**
   * One command buffer: the program `repeats` times, then the read-backs.
   * @param {number[]} readbacks triples of buffer, offset, size
   * @returns {number} ticket for `collect`
   */
  submit(program, repeats = 1, readbacks = []) {
    this.check();
    const start = performance.now();
    const encoder = this.device.createCommandEncoder();
    if (program) this.#encode(encoder, this.objects[program], repeats);
    let size = 0;
    for (let i = 2; i < readbacks.length; i += 3) size += readbacks[i];
    const staging = size ? this.#staged(size) : null;
    for (let i = 0, at = 0; i < readbacks.length; i += 3) {
      encoder.copyBufferToBuffer(this.objects[readbacks[i]], readbacks[i + 1], staging, at, readbacks[i + 2]);
      at += readbacks[i + 2];
    }
    this.device.queue.submit([encoder.finish()]);
    this.counts.submits++;
    const { READ } = globalThis.GPUMapMode;
    const ready = staging ? staging.mapAsync(READ, 0, size) : this.device.queue.onSubmittedWorkDone();
    ready.catch(() => {});
    this.counts.encode_ms += performance.now() - start;
    return this.#ticket({ ready, staging, size });
  }

  /**
   * Runs a program `repeats` times in one pass. Browsers round timestamps to some 100 µs: repeat what is short.
   * @returns {Promise<number>} nanoseconds of GPU time of the pass
   */
  async time(program, repeats = 1) {
    this.check();
    if (!this.device.features.has('timestamp-query')) {
      const remedy = 'Measure by the clock, or use a browser and a driver that have them.';
      throw new BridgeError('LimitError', 'This device has no timestamp queries.', remedy);
    }
    const { GPUBufferUsage: usage, GPUMapMode } = globalThis;
    const size = 16; // two timestamps
    this.clock ??= {
      querySet: this.device.createQuerySet({ type: 'timestamp', count: 2 }),
      resolved: this.device.createBuffer({ size, usage: usage.QUERY_RESOLVE | usage.COPY_SRC, label: 'timestamps' }),
    };
    const { querySet, resolved } = this.clock;
    const encoder = this.device.createCommandEncoder();
    const timestampWrites = { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    this.#encode(encoder, this.objects[program], repeats, timestampWrites);
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    const staging = this.#staged(size);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
    this.device.queue.submit([encoder.finish()]);
    this.counts.submits++;
    const ready = staging.mapAsync(GPUMapMode.READ, 0, size);
    const [begin, end] = new BigUint64Array((await this.collect(this.#ticket({ ready, staging, size }))).buffer);
    return Number(end - begin);
  }

  #ticket(entry) {
    this.tickets.set(++this.lastTicket, entry);
    return this.lastTicket;
  }

  /** Waits for a submission. @returns {Promise<Uint8Array>} its read-backs, one after the other */
  async collect(ticket) {
    const { ready, staging, size } = this.tickets.get(ticket);
    this.tickets.delete(ticket);
    const start = performance.now();
    try {
      await ready;
      this.counts.wait_ms += performance.now() - start;
    } catch (error) {
      await this.#checkLoss();
      this.check();
      throw new BridgeError('DeviceLostError', `The GPU did not finish its work (${error.message}).`);
    }
    this.check();
    if (!staging) return new Uint8Array(0);
    this.counts.maps++;
    const bytes = new Uint8Array(staging.getMappedRange(0, size)).slice();
    staging.unmap();
    if (staging.size <= KEPT) this.staging.push(staging);
    else staging.destroy();
    return bytes;
  }

  /** `collect` without a promise, which takes Pyodide long to await: calls receiver(ticket, bytes), or with an error. */
  deliver(ticket, receiver) {
    this.collect(ticket).then(
      (bytes) => receiver(ticket, bytes),
      (error) => receiver(ticket, undefined, error),
    );
  }

  /** What was done so far; `encode_ms` in `submit`, `wait_ms` waiting in `collect`. */
  counters() {
    return { ...this.counts };
  }

  close() {
    this.device.destroy();
  }
}
