/** Charts in the site's colours, over uPlot. */
import uPlot from './vendor/uPlot.esm.js';

const HEIGHT = 200; // px

/** A colour of the page by the name of its custom property, as it is when the chart is drawn. */
export const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An axis in the page's colours. */
export function axis(options = {}) {
  return {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    labelSize: 18,
    size: 34,
    ...options,
  };
}

/** One chart in an element, a text in place of the picture; it follows the element's width and the colour scheme. */
export class Chart {
  #element;
  #options;
  #plot = null;

  constructor(element, options) {
    this.#element = element;
    this.#options = {
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      ...options,
    };
    element.replaceChildren();
    element.setAttribute('role', 'img');
    new ResizeObserver(() => this.#plot?.setSize({ width: element.clientWidth, height: HEIGHT })).observe(element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  show(data, summary) {
    this.#element.setAttribute('aria-label', summary);
    if (this.#plot) this.#plot.setData(data);
    else this.#plot = new uPlot({ ...this.#options, width: this.#element.clientWidth }, data, this.#element);
  }

  redraw() {
    this.#plot?.redraw(false);
  }
}
