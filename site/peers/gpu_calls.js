/** What a library that runs in this window asks of the GPU: counted where the calls are made, so that no log is believed. */
export const calls = { dispatches: 0, submits: 0 };

function count(prototype, method, name) {
  const original = prototype[method];
  prototype[method] = function (...values) {
    calls[name] += 1;
    return original.apply(this, values);
  };
}

/** Counts from now on; to be called before the library is imported. */
export function countCalls() {
  if (!globalThis.GPUQueue) return;
  count(GPUQueue.prototype, 'submit', 'submits');
  for (const method of ['dispatchWorkgroups', 'dispatchWorkgroupsIndirect']) count(GPUComputePassEncoder.prototype, method, 'dispatches');
}
