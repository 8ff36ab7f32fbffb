/** Points of a regression: what is known of them, and where a query may stand. */
import { number } from "./urlState.js";
import { pairs } from "./attentionState.js";

/** @typedef {{points: [number, number][], kernel: string, bandwidth: number, x: number}} Plot */

export const ACROSS = /** @type {[number, number]} */ ([0, 10]);
export const UP = /** @type {[number, number]} */ ([-2, 2]);
export const BANDWIDTHS = /** @type {[number, number]} */ ([0.1, 4]);
export const MOST = 24; // points
const GRID = 161; // places where the curve is known

const FIRST = [[0.5, 0.5], [1.5, 1.1], [2.4, 0.8], [3.3, 0.2], [4.4, -0.9], [5.2, -0.7], [6.1, -0.4], [7.3, 0.6], [8.2, 0.8], [9.4, 0.1]];

/** Read a plot from an address. @param {Object<string, string>} values @param {string[]} kernels @returns {Plot} */
export function fromValues(values, kernels) {
  const points = pairs(values.points)?.slice(0, MOST).map(within);
  return {
    points: points ?? FIRST.map(within),
    kernel: kernels.includes(values.kernel) ? values.kernel : "gaussian",
    bandwidth: number(values.b, 0.6, BANDWIDTHS),
    x: number(values.x, 5, ACROSS),
  };
}

/** Tell a plot in an address. @param {Plot} plot */
export function toValues({ points, kernel, bandwidth, x }) {
  const told = points.map((point) => point.join()).join(";");
  return {
    points: told === FIRST.map((point) => point.join()).join(";") ? "" : told,
    kernel: kernel === "gaussian" ? "" : kernel,
    b: bandwidth === 0.6 ? "" : bandwidth,
    x: x === 5 ? "" : x,
  };
}

/** Keep a point on the paper, to hundredths. @param {number[]} point @returns {[number, number]} */
export function within([x, y]) {
  const round = (/** @type {number} */ value, /** @type {number[]} */ [least, most]) => Math.round(100 * Math.min(Math.max(value, least), most)) / 100;
  return [round(x, ACROSS), round(y, UP)];
}

/** Move a point. @param {Plot} plot @param {number} place @param {number[]} to @returns {Plot} */
export function moved(plot, place, to) {
  return { ...plot, points: plot.points.map((point, n) => (n === place ? within(to) : point)) };
}

/** Add a point, up to a number that can be told apart. @param {Plot} plot @param {number[]} point @returns {Plot} */
export function added(plot, point) {
  return plot.points.length < MOST ? { ...plot, points: [...plot.points, within(point)] } : plot;
}

/** Take a point away; one always stays. @param {Plot} plot @param {number} place @returns {Plot} */
export function removed(plot, place) {
  return plot.points.length > 1 ? { ...plot, points: plot.points.filter((_, n) => n !== place) } : plot;
}

const grid = Array.from({ length: GRID }, (_, n) => ACROSS[0] + ((ACROSS[1] - ACROSS[0]) * n) / (GRID - 1));

/** What the server is asked: attention from a grid, and from one place, to the points. @param {Plot} plot */
export function request({ points, kernel, bandwidth, x }) {
  return {
    queries: [...grid, x].map((place) => [place]),
    keys: points.map((point) => [point[0]]),
    values: points.map((point) => [point[1]]),
    score: kernel,
    bandwidth,
  };
}

/**
 * Read the curve and the weights at one place from the answer; where no point is near there is no curve.
 * @param {import("./formula.js").Answer} answer
 */
export function curve(answer) {
  const seen = (/** @type {number[]} */ row) => row.some((weight) => weight > 0);
  const last = answer.weights.length - 1;
  const heights = answer.context.map(([y], n) => (seen(answer.weights[n]) ? y : null));
  return {
    line: grid.map((x, n) => (heights[n] === null ? null : [x, heights[n]])),
    weights: answer.weights[last],
    height: heights[last],
  };
}
