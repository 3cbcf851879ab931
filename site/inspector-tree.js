/** Draws a step's tree from left to right: a column a depth, a row a branch. */
import { SOURCES } from './inspector-run.js';

const ROW = 32; // px
const BOX = 24;
const GAP = 26; // between columns
const BADGE = 18;
const TICK = 15;
const LETTER = 7.3; // width of a 12 px monospaced letter
const LONGEST = 14; // letters of a label
const NARROW = '…⏎⇥␍∅'; // of those above U+1100

/** A token's text with its blanks made visible. */
export function visible(text) {
  return text.replaceAll(' ', '·').replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll('\r', '␍') || '∅';
}

function shortened(text) {
  const letters = [...visible(text)];
  return letters.length > LONGEST ? [...letters.slice(0, LONGEST - 1), '…'].join('') : letters.join('');
}

/** Letters that a label is wide; those of East Asian scripts and emoji count twice. */
function wide(text) {
  const width = (letter) => (letter.codePointAt(0) >= 0x1100 && !NARROW.includes(letter) ? 2 : 1);
  return [...text].reduce((sum, letter) => sum + width(letter), 0);
}

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * Column and row of each node: a first child stands in its parent's row, the others below; accepted ones come first.
 * @param {{parent: number, state: string}[]} nodes
 * @returns {{column: number, row: number}[]}
 */
export function layout(nodes) {
  const children = nodes.map(() => []);
  nodes.forEach(({ parent, state }, number) => {
    if (!number) return;
    if (state === 'accepted') children[parent].unshift(number);
    else children[parent].push(number);
  });
  const places = [];
  let row = 0;
  const place = (number, column) => {
    places[number] = { column, row };
    children[number].forEach((child, rank) => {
      if (rank) row++;
      place(child, column + 1);
    });
  };
  if (nodes.length) place(0, 0);
  return places;
}

/**
 * @param {ReturnType<import('./inspector-run.js').Run['nodes']>} nodes
 * @param {string} summary what the picture shows, for those who don't see it
 * @returns {SVGElement}
 */
export function drawTree(nodes, summary) {
  const places = layout(nodes);
  const widths = [];
  nodes.forEach((node, number) => {
    const { column } = places[number];
    widths[column] = Math.max(widths[column] ?? 0, boxWidth(node));
  });
  const lefts = widths.map((_, column) => 4 + widths.slice(0, column).reduce((sum, width) => sum + width + GAP, 0));
  const boxes = nodes.map((node, number) => {
    const { column, row } = places[number];
    return { left: lefts[column], top: 4 + row * ROW, width: boxWidth(node) };
  });
  const width = lefts.at(-1) + widths.at(-1) + 4;
  const height = 8 + BOX + ROW * Math.max(...places.map(({ row }) => row));
  const edges = nodes.flatMap((node, number) => (number ? [edge(boxes[node.parent], boxes[number], node.state)] : []));
  // Bold lines last, so that they lie on top where branches share a stretch.
  edges.sort((a, b) => a.classList.contains('accepted') - b.classList.contains('accepted'));
  const frame = { width, height, viewBox: `0 0 ${width} ${height}` };
  const drawing = shape('svg', { ...frame, role: 'img', 'aria-label': summary });
  drawing.append(...edges, ...nodes.map((node, number) => box(node, boxes[number])));
  return drawing;
}

function boxWidth({ text, state, source }) {
  return 14 + LETTER * wide(shortened(text)) + (source ? BADGE : 0) + (state === 'accepted' ? TICK : 0);
}

function edge(from, to, state) {
  const [start, end] = [from.left + from.width, to.left];
  const [above, below] = [from.top + BOX / 2, to.top + BOX / 2];
  return shape('path', { class: `edge ${state}`, d: `M${start} ${above}H${end - GAP / 2}V${below}H${end}` });
}

function box({ text, state, source }, { left, top, width }) {
  const drawn = shape('g', { class: `node ${state} ${source ?? ''}`, transform: `translate(${left} ${top})` });
  const from = source ? `, ${SOURCES[source].name}` : '';
  drawn.append(shape('title', {}, `${visible(text)}: ${state}${from}`));
  drawn.append(shape('rect', { class: 'box', width, height: BOX, rx: 5 }));
  if (source) {
    drawn.append(shape('path', { class: 'badge', d: `M5 1H${BADGE}V${BOX - 1}H5a4 4 0 0 1-4-4V5a4 4 0 0 1 4-4z` }));
    drawn.append(shape('text', { class: 'letter', x: 1 + BADGE / 2, y: 16 }, SOURCES[source].letter));
  }
  drawn.append(shape('text', { class: 'token', x: (source ? BADGE : 0) + 7, y: 16 }, shortened(text)));
  if (state === 'accepted') drawn.append(shape('text', { class: 'tick', x: width - TICK, y: 16 }, '✓'));
  return drawn;
}
