/**
 * worker.js on an artificially slowed GPU: behind every dispatch a kernel keeps all of the GPU busy for `?spin=` more
 * microseconds, so that a fast GPU takes as long for a step as a slow one. For measurements of the page beside it.
 *
 *     Assistant.load({ model, worker: slowedWorker(200) })     // of frames.js
 *
 * The spinning is measured once on the device and then a fixed number of rounds, which nothing optimizes away.
 */
import './js_bridge/worker.js';

const MICROSECONDS = Number(new URL(self.location.href).searchParams.get('spin'));
const GROUPS = 256;
const LONG = 20; // ms that a measurement takes at least: completions are reported coarsely
const MOST_ROUNDS = 2 ** 28;

const SPIN = `
override rounds: u32;
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  var x = out[id.x & 63u] + id.x;
  for (var i = 0u; i < rounds; i++) { x = x * 1664525u + 1013904223u; }
  if (x == 0u) { out[id.x & 63u] = 1u; }
}`;

const spins = new WeakMap(); // what runs behind each dispatch, by device, then by encoder and pass

function pipelineOf(device, rounds) {
  const module = device.createShaderModule({ code: SPIN });
  return device.createComputePipelineAsync({ layout: 'auto', compute: { module, constants: { rounds } } });
}

/** Milliseconds that the GPU takes for `count` dispatches in one submission. */
async function timed(device, { pipeline, group }, count) {
  const encoder = methods.createCommandEncoder.call(device);
  const pass = methods.beginComputePass.call(encoder);
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  for (let i = 0; i < count; i++) methods.dispatchWorkgroups.call(pass, GROUPS);
  pass.end();
  await device.queue.onSubmittedWorkDone();
  const start = performance.now();
  device.queue.submit([encoder.finish()]);
  await device.queue.onSubmittedWorkDone();
  return performance.now() - start;
}

/** A pipeline that takes the wanted time on this device, with its bind group. */
async function spinOf(device) {
  const buffer = device.createBuffer({ size: 256, usage: GPUBufferUsage.STORAGE });
  const made = async (rounds) => {
    const pipeline = await pipelineOf(device, rounds);
    const resource = { buffer };
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource }] });
    return { pipeline, group };
  };
  for (let rounds = 64; ; rounds *= 2) {
    const spin = await made(rounds);
    await timed(device, spin, 1); // the first run of a pipeline is slower
    const [one, many] = [await timed(device, spin, 1), await timed(device, spin, 33)];
    const each = (1000 * (many - one)) / 32; // microseconds, without what a submission costs
    if (many - one < LONG && rounds < MOST_ROUNDS) continue;
    return made(Math.max(1, Math.round((rounds * MICROSECONDS) / each)));
  }
}

const methods = {};

/** Replaces a method by one that gets the original's result. */
function behind(prototype, name, act) {
  const original = (methods[name] = prototype[name]);
  prototype[name] = function (...args) {
    return act(this, original.apply(this, args), args);
  };
}

/** What was made from something that has a spin has it too. */
const inherit = (parent, made) => {
  if (spins.has(parent)) spins.set(made, { ...spins.get(parent) });
  return made;
};

if (MICROSECONDS > 0) {
  behind(GPUAdapter.prototype, 'requestDevice', async (adapter, requested) => {
    const device = await requested;
    spins.set(device, await spinOf(device));
    return device;
  });
  behind(GPUDevice.prototype, 'createCommandEncoder', inherit);
  behind(GPUCommandEncoder.prototype, 'beginComputePass', inherit);
  behind(GPUComputePassEncoder.prototype, 'setPipeline', (pass, _, [pipeline]) => {
    if (spins.has(pass)) spins.get(pass).before = pipeline;
  });
  behind(GPUComputePassEncoder.prototype, 'setBindGroup', (pass, _, args) => {
    if (spins.has(pass) && args[0] === 0) spins.get(pass).bound = args;
  });
  behind(GPUComputePassEncoder.prototype, 'dispatchWorkgroups', (pass) => {
    const spin = spins.get(pass);
    if (!spin) return;
    methods.setPipeline.call(pass, spin.pipeline);
    methods.setBindGroup.call(pass, 0, spin.group);
    methods.dispatchWorkgroups.call(pass, GROUPS);
    methods.setPipeline.call(pass, spin.before);
    methods.setBindGroup.apply(pass, spin.bound);
  });
}
