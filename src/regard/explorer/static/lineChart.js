/** Line chart of metrics over steps; values are read with pointer or keyboard. */
import { createElement, createSvgElement } from "../viz/dom.js";
import { formatTick, linearScale, linePath, paddedExtent, ticks } from "./axis.js";
import { formatMetric } from "./format.js";
import { nearestPoint } from "./logSeries.js";

/**
 * @import { Axis } from "./axis.js"
 * @import { Texts } from "./i18n.js"
 * @import { Chart, Series } from "./logSeries.js"
 */

const DEFAULT_WIDTH = 400; // pixels, until the chart is laid out
const HEIGHT = 220; // pixels, as in the style sheet
const MARGIN = { left: 48, right: 14, top: 12, bottom: 28 };
const MAX_POINTS_WITH_DOTS = 40;
/** @type {Object<string, number>} */
const ARROWS = { ArrowLeft: -1, ArrowRight: 1 };
const COLOURS = ["var(--accent)", "var(--highlight)", "var(--value)"];

/**
 * Create a chart; `draw` replaces its series. One unit of the SVG is one pixel, so that texts are not scaled.
 * @param {Texts["training"]} texts
 */
export function createLineChart(texts) {
  const title = createElement("h3");
  const legend = createElement("p", { className: "chart-legend" });
  const svg = createSvgElement("svg", { class: "chart", role: "img", tabindex: 0 });
  const header = createElement("figcaption", { className: "chart-header" }, title, legend);
  let chart = /** @type {Chart|null} */ (null);
  let cursor = /** @type {number|null} */ (null); // the step whose values the legend shows; null for the last

  /** @param {Chart} newChart */
  function draw(newChart) {
    chart = newChart;
    const { name, series } = chart;
    const size = { width: svg.clientWidth || DEFAULT_WIDTH, height: HEIGHT };
    svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    title.textContent = texts.charts[name] ?? name;
    const points = series.flatMap((one) => one.points);
    const xAxis = linearScale(paddedExtent(points.map(([step]) => step), 0.02), [MARGIN.left, size.width - MARGIN.right]);
    const yAxis = linearScale(paddedExtent(points.map(([, value]) => value)), [size.height - MARGIN.bottom, MARGIN.top]);
    svg.replaceChildren(createGrid(xAxis, yAxis, size, texts), ...series.flatMap((one, n) => createLine(one, n, xAxis, yAxis)));
    if (cursor !== null) {
      const x = xAxis.toPixel(cursor);
      svg.append(createSvgElement("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: size.height - MARGIN.bottom }));
    }
    legend.replaceChildren(...series.map((one, n) => createLegendEntry(one, n)));
    svg.setAttribute("aria-label", `${title.textContent}: ${legend.textContent}`);
    svg.onpointermove = ({ clientX }) => {
      moveCursor(xAxis.toValue(clientX - svg.getBoundingClientRect().left));
    };
  }

  /** @param {Series} series @param {number} n */
  function createLegendEntry(series, n) {
    const [step, value] = cursor === null ? series.points[series.points.length - 1] : nearestPoint(series, cursor);
    const swatch = createElement("span", { className: "swatch" });
    swatch.style.background = COLOURS[n % COLOURS.length];
    const label = texts.series[series.name] ?? series.name;
    return createElement("span", {}, swatch, `${label} ${formatMetric(value)}`, createElement("small", {}, ` ${texts.atStep(step)}`));
  }

  /** Move the cursor to the logged step nearest to a step. @param {number} step */
  function moveCursor(step) {
    if (!chart) return;
    const [nearest] = nearestPoint({ points: chart.series.flatMap((series) => series.points) }, step);
    if (nearest === cursor) return;
    cursor = nearest;
    draw(chart);
  }

  new ResizeObserver(() => chart && draw(chart)).observe(svg);
  svg.addEventListener("pointerleave", () => {
    cursor = null;
    if (chart) draw(chart);
  });
  svg.addEventListener("keydown", (event) => {
    const by = ARROWS[event.key];
    if (!by || !chart) return;
    event.preventDefault();
    const steps = [...new Set(chart.series.flatMap((series) => series.points.map(([step]) => step)))].sort((a, b) => a - b);
    const index = cursor === null ? steps.length - 1 : steps.indexOf(cursor) + by;
    moveCursor(steps[Math.min(Math.max(index, 0), steps.length - 1)]);
  });
  return { element: createElement("figure", { className: "panel chart-figure" }, header, svg), draw };
}

/** @param {Series} series @param {number} n @param {Axis} xAxis @param {Axis} yAxis */
function createLine({ points }, n, xAxis, yAxis) {
  const colour = COLOURS[n % COLOURS.length];
  const pixels = points.map(([step, value]) => [xAxis.toPixel(step), yAxis.toPixel(value)]);
  const line = createSvgElement("path", { class: "line", d: linePath(pixels) });
  line.style.stroke = colour;
  if (points.length > MAX_POINTS_WITH_DOTS) return [line];
  const dots = pixels.map(([x, y]) => createSvgElement("circle", { cx: x, cy: y, r: 3 }));
  for (const dot of dots) dot.style.fill = colour;
  return [line, ...dots];
}

/**
 * @param {Axis} xAxis
 * @param {Axis} yAxis
 * @param {{width: number, height: number}} size
 * @param {Texts["training"]} texts
 */
function createGrid(xAxis, yAxis, { width, height }, texts) {
  const [xTicks, yTicks] = [ticks(xAxis.min, xAxis.max, 5), ticks(yAxis.min, yAxis.max, 4)];
  const bottom = height - MARGIN.bottom;
  return createSvgElement("g", { class: "grid-lines" },
    ...yTicks.flatMap((value) => {
      const y = yAxis.toPixel(value);
      return [
        createSvgElement("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
        createSvgElement("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, formatTick(value, yTicks)),
      ];
    }),
    ...xTicks.map((step) =>
      createSvgElement("text", { x: xAxis.toPixel(step), y: bottom + 18, "text-anchor": "middle" }, formatTick(step, xTicks))),
    createSvgElement("text", { x: MARGIN.left - 8, y: bottom + 18, "text-anchor": "end" }, texts.step));
}
