/** Fetches the command line's job, does it through the client, and posts every message back in order. */
import { Assistant } from './js_bridge/client.js';

const key = new URLSearchParams(location.search).get('key');
const endpoint = (name) => `__${name}?key=${encodeURIComponent(key)}`;

const waiting = [];
let sending = false;

async function send(message) {
  waiting.push(message);
  if (sending) return;
  sending = true;
  while (waiting.length) {
    const body = JSON.stringify(waiting.splice(0));
    await fetch(endpoint('event'), { method: 'POST', body });
  }
  sending = false;
}

async function run() {
  const { load, method, params } = await (await fetch(endpoint('job'))).json();
  const onProgress = (progress) => send({ event: 'progress', ...progress });
  const onText = (text) => send({ event: 'text', text });
  const assistant = await Assistant.load({ ...load, onProgress });
  return assistant.request(method, params, { onProgress, onText });
}

try {
  await send({ event: 'done', result: await run() });
} catch (error) {
  await send({ event: 'error', name: error.name, message: error.message, remedy: error.remedy ?? '' });
}
