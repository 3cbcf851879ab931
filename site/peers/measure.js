/**
 * Times one engine. An engine is an object with
 *   reply(text, tokens)     continues a text greedily, without any cache of earlier prompts, to {promptTokens, tokens,
 *                           firstMs, decodeMs}: time until the first token, and a token's time behind it,
 *                           null where the reply is too short to tell
 *   backend()               'webgpu' or 'cpu', known after a reply
 *   notes()                 sentences on what to mind of the numbers
 *   close()
 */

const WORDS = (
  'the river runs past old mills where workers once made paper and cloth for towns along its banks until new roads took ' +
  'the trade away and quiet years followed while families stayed and kept their gardens'
).split(' ');

/** A text of so many characters. With another `salt` it differs from its first word on, so that no prefix is known. */
export function prompt(characters, salt) {
  let text = `Page ${salt} says:`;
  for (let word = 0; text.length < characters; word++) text += ` ${WORDS[(word * 7 + (word % 11) + salt) % WORDS.length]}`;
  return text.slice(0, characters);
}

/** Median and spread. */
export function summary(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1), samples };
}

const TRIES = 4;

/** Characters that make some `wanted` tokens of prompt: engines differ in templates, models in vocabularies. */
async function fit(engine, wanted) {
  // At least one character a token: the first try is never too long.
  let characters = wanted;
  for (let tries = 0; tries < TRIES; tries++) {
    const { promptTokens } = await engine.reply(prompt(characters, 100 + tries), 2);
    if (Math.abs(promptTokens - wanted) <= wanted / 100) break;
    characters = Math.max(16, Math.round((characters * wanted) / promptTokens));
  }
  return characters;
}

/**
 * Warms the engine up and times its replies.
 * @param {{promptTokens: number, tokens: number, runs: number}} wanted
 * @param {(what: string) => void} say
 */
export async function measure(engine, { promptTokens, tokens, runs }, say) {
  say('Warming up');
  const characters = await fit(engine, promptTokens);
  await engine.reply(prompt(characters, 0), tokens);
  const replies = [];
  for (let run = 1; run <= runs; run++) {
    say(`Run ${run} of ${runs}`);
    replies.push(await engine.reply(prompt(characters, run), tokens));
  }
  if (replies.some(({ decodeMs }) => decodeMs === null)) {
    const [message, remedy] = [`Replies of ${tokens} tokens are too short to tell a token's time.`, 'Measure longer ones.'];
    throw Object.assign(new Error(message), { name: 'UsageError', remedy });
  }
  const notes = [...engine.notes()];
  const shortest = Math.min(...replies.map((reply) => reply.tokens));
  if (shortest < tokens) notes.push(`A reply ended after ${shortest} of ${tokens} tokens.`);
  return {
    backend: engine.backend(),
    promptTokens: Math.round(summary(replies.map((reply) => reply.promptTokens)).median),
    tokens: shortest,
    firstToken: summary(replies.map((reply) => reply.firstMs)),
    decode: summary(replies.map((reply) => reply.decodeMs)),
    notes,
  };
}
