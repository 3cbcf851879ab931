/**
 * The module worker: boots Pyodide, starts pyweb's service and hands it every message as JSON.
 *
 * In: {id, method, params}; the first must be `boot` {runtime}, the URL of the folder of runtime parts.
 * Out: {id, event, ...}, see docs/architecture.md. Messages that arrive while booting wait.
 */
import * as gpu from './gpu.js';
import * as store from './store.js';
import * as tokenizer from './tokenizer.js';
import * as weights from './weights.js';

/** Packages that the core start does without, in the order in which they load in the background. */
const GROUPS = { numpy: ['numpy'], page: ['lxml', 'trafilatura'] };

/** Picked files by the number of the message that brought them: JSON can't carry them. */
const files = new Map();

const post = (message) => self.postMessage(message);

function takeFile(number) {
  const file = files.get(number);
  files.delete(number);
  return file;
}

/** Loads the groups one after the other and gives a function that awaits one of them. */
function background(pyodide) {
  const loading = {};
  let last = Promise.resolve();
  for (const [group, names] of Object.entries(GROUPS)) {
    last = loading[group] = last.then(() => pyodide.loadPackage(names, { messageCallback() {} }));
    last.catch(() => {}); // whoever awaits the group hears of it
  }
  return async (group) => {
    await loading[group];
  };
}

async function boot({ runtime }) {
  const at = (name) => new URL(name, runtime).href;
  const progress = (done, note) => post({ id: 0, event: 'progress', stage: 'runtime', done, total: 3, note });
  progress(0, 'Pyodide');
  const { loadPyodide } = await import(at('pyodide.mjs'));
  // Relative URLs fail in silence here.
  const pyodide = await loadPyodide({
    indexURL: runtime,
    lockFileURL: at('pyodide-lock.json'),
    stdLibURL: at('python_stdlib.zip'),
    packages: ['pyweb'],
  });
  progress(2, 'pyweb');
  const service = pyodide.pyimport('pyweb.api.service').start({
    gpu,
    store,
    weights,
    tokenizer,
    tokenizerUrl: at('tokenizers.js'),
    packages: background(pyodide),
    takeFile,
    post: (json) => post(JSON.parse(json)),
  });
  progress(3, `Python ${pyodide.runPython('import sys; sys.version.split()[0]')}`);
  return service;
}

/** A Python exception by its class name and own words, anything else as a failed download. */
function described(error) {
  if (error?.type) {
    const lines = error.message.trim().split('\n');
    return { name: error.type, message: lines.at(-1).replace(/^[\w.]+: /, ''), remedy: '' };
  }
  return {
    name: 'NetworkError',
    message: `The browser runtime could not be loaded: ${error?.message ?? error}.`,
    remedy: 'Check the connection and reload the page.',
  };
}

let service;

self.onmessage = async ({ data }) => {
  const fail = (error) => post({ id: data.id, event: 'error', ...described(error) });
  if (data.method === 'boot') {
    service = boot(data.params);
    service.then(() => post({ id: data.id, event: 'done', result: {} }), fail);
    return;
  }
  const file = data.params?.model?.file;
  if (file instanceof File) files.set(data.id, file);
  try {
    (await service).handle(JSON.stringify(data));
  } catch (error) {
    fail(error);
  }
};
