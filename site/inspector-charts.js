/** The inspector's three charts, each with a text in place of its picture; tables have the numbers as well. */
import { axis, Chart, colour } from './plot.js';
import uPlot from './vendor/uPlot.esm.js';

const WIDTHS = [0, 1, 2, 3, 4, 5]; // as powers of two
const INTEGERS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** The charts of a run and of the device's costs. */
export class Charts {
  #widths;
  #accepted;
  #costs;
  #selected = 0;

  /**
   * @param {{widths: Element, accepted: Element, costs: Element}} elements
   * @param {(index: number) => void} onPick called with the index of a step that was clicked
   */
  constructor({ widths, accepted, costs }, onPick) {
    const overSteps = (y, label, series) => ({
      scales: { x: { time: false, range: (_, low, high) => [0.5, Math.max(high ?? 1, 10) + 0.5] }, y },
      axes: [axis({ incrs: INTEGERS, label: 'step' }), axis({ label, ...(y.axis ?? {}) })],
      series: [{}, ...series],
      hooks: { draw: [(plot) => this.#mark(plot)], ready: [(plot) => pickable(plot, onPick)] },
    });
    const powers = { splits: WIDTHS, values: (_, splits) => splits.map((power) => 2 ** power) };
    this.#widths = new Chart(
      widths,
      overSteps({ range: [-0.3, 5.3], axis: powers }, 'nodes', [
        {
          stroke: colour('--accent'),
          width: 2,
          paths: uPlot.paths.stepped({ align: 1 }),
          points: { show: true, size: 5, fill: colour('--accent') },
        },
      ]),
    );
    this.#accepted = new Chart(
      accepted,
      overSteps({ range: (_, low, high) => [0, Math.max(high ?? 0, 4) + 0.5], axis: { incrs: INTEGERS } }, 'guesses', [
        { fill: colour('--bar'), width: 0, paths: uPlot.paths.bars({ size: [0.7, 24] }), points: { show: false } },
        { stroke: colour('--text'), width: 2, dash: [6, 4], spanGaps: true, points: { show: false } },
      ]),
    );
    this.#costs = new Chart(costs, {
      scales: { x: { time: false, range: [-0.3, 5.3] }, y: { range: (_, low, high) => [0, 1.15 * (high || 1)] } },
      axes: [axis({ ...powers, label: 'nodes' }), axis({ label: 'ms a step', size: 50 })],
      series: [
        {},
        { stroke: colour('--accent'), width: 2, points: { show: true, size: 7, fill: colour('--accent') } },
      ],
    });
  }

  /**
   * @param {import('./inspector-run.js').Run['steps']} steps
   * @param {number} selected index of the step that is looked at
   */
  steps(steps, selected) {
    this.#selected = selected + 1;
    const numbers = steps.map(({ number }) => number);
    const widest = Math.max(...steps.map(({ width }) => width));
    const accepted = steps.reduce((sum, step) => sum + step.accepted, 0);
    const each = (accepted / steps.length).toFixed(2);
    this.#widths.show(
      [numbers, steps.map(({ width }) => Math.log2(width))],
      `Line of ${steps.length} steps, the widest of ${widest} nodes. The table of all steps has the numbers.`,
    );
    this.#accepted.show(
      [numbers, steps.map((step) => step.accepted), steps.map(({ expected }) => expected)],
      `Bars of ${steps.length} steps: ${accepted} guesses accepted, ${each} a step. The table below has the numbers.`,
    );
  }

  /** @param {[width: number, milliseconds: number][]} costs */
  costs(costs) {
    this.#costs.show(
      [costs.map(([width]) => Math.log2(width)), costs.map(([, milliseconds]) => milliseconds)],
      `Line: ${costs.map(([width, milliseconds]) => `${width} nodes ${milliseconds.toFixed(1)} ms`).join(', ')}.`,
    );
  }

  /** A line at the step that is looked at. */
  #mark({ ctx, bbox, valToPos }) {
    const x = Math.round(valToPos(this.#selected, 'x', true));
    ctx.save();
    ctx.setLineDash([]);
    ctx.strokeStyle = colour('--mark')();
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }
}

function pickable(plot, onPick) {
  plot.over.addEventListener('click', ({ offsetX }) => onPick(plot.posToIdx(offsetX)));
}
