/** The benchmark's charts; its tables have the same numbers. */
import { axis, Chart, colour } from './plot.js';
import uPlot from './vendor/uPlot.esm.js';

const from0 = { range: (_, low, high) => [0, 1.15 * (high || 1)] };

const medians = (rows) => rows.map(({ milliseconds }) => milliseconds.median);

/** Median, least and most of each row, as columns. */
const spread = (rows) => ['median', 'min', 'max'].map((name) => rows.map(({ milliseconds }) => milliseconds[name]));

/** A line of medians in a band from least to most. */
const LINE = {
  series: [
    {},
    { stroke: colour('--accent'), width: 2, points: { show: true, size: 7, fill: colour('--accent') } },
    { width: 0, points: { show: false } },
    { width: 0, points: { show: false } },
  ],
  bands: [{ series: [3, 2], fill: colour('--band') }],
};

const inWords = (rows, what) => rows.map((row) => `${what(row)} ${row.milliseconds.median.toFixed(2)} ms`).join(', ');

function modes(place, rows) {
  const numbers = rows.map((_, at) => at);
  const paths = uPlot.paths.bars({ size: [0.6, 80] });
  const chart = new Chart(place, {
    scales: { x: { time: false, range: [-0.6, rows.length - 0.4] }, y: from0 },
    axes: [
      axis({ splits: numbers, values: (_, at) => at.map((number) => rows[number].mode), grid: { show: false } }),
      axis({ label: 'ms a token', size: 50 }),
    ],
    series: [{}, { fill: colour('--bar'), width: 0, paths, points: { show: false } }],
  });
  chart.show([numbers, medians(rows)], `Bars: ${inWords(rows, ({ mode }) => mode)}.`);
}

function widths(place, rows) {
  const powers = rows.map(({ width }) => Math.log2(width));
  const chart = new Chart(place, {
    scales: { x: { time: false, range: [-0.3, 5.3] }, y: from0 },
    axes: [
      axis({ splits: powers, values: (_, at) => at.map((power) => 2 ** power), label: 'nodes' }),
      axis({ label: 'ms a step', size: 50 }),
    ],
    ...LINE,
  });
  chart.show([powers, ...spread(rows)], `Line: ${inWords(rows, ({ width }) => `${width} nodes`)}.`);
}

function prefill(place, rows) {
  const lengths = rows.map(({ tokens }) => tokens);
  const chart = new Chart(place, {
    scales: { x: { time: false, range: [0, 1.05 * Math.max(...lengths)] }, y: from0 },
    axes: [axis({ label: 'prompt tokens' }), axis({ label: 'ms', size: 55 })],
    ...LINE,
  });
  chart.show([lengths, ...spread(rows)], `Line: ${inWords(rows, ({ tokens }) => `${tokens} tokens`)}.`);
}

/** Shows the charts of those sections that a result has beyond the one before; `place` gives the element of one. */
export function drawCharts(result, before, place) {
  for (const [name, draw] of Object.entries({ modes, widths, prefill })) {
    const element = place(name);
    const rows = result[name]?.rows ?? [];
    element.closest('figure').hidden = rows.length === 0;
    if (rows.length && !before?.[name]) draw(element, rows);
  }
}
