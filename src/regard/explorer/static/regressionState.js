/** State of the kernel regression playground: points, kernel, bandwidth and the query x; with its URL form. */
import { parseVectors } from "./attentionState.js";
import { parseNumber } from "./urlState.js";

/**
 * @import { Params } from "./urlState.js"
 * @typedef {{points: [number, number][], kernel: string, bandwidth: number, x: number}} RegressionState
 */

export const X_RANGE = /** @type {[number, number]} */ ([0, 10]);
export const Y_RANGE = /** @type {[number, number]} */ ([-2, 2]);
export const BANDWIDTH_RANGE = /** @type {[number, number]} */ ([0.1, 4]);
export const MAX_POINTS = 24;
const CURVE_SAMPLES = 161;
const DEFAULT_KERNEL = "gaussian";
const DEFAULT_BANDWIDTH = 0.6;
const DEFAULT_X = 5;
const DEFAULT_POINTS = [[0.5, 0.5], [1.5, 1.1], [2.4, 0.8], [3.3, 0.2], [4.4, -0.9], [5.2, -0.7], [6.1, -0.4], [7.3, 0.6], [8.2, 0.8], [9.4, 0.1]];

/**
 * Parse a state from URL parameters; invalid ones become defaults.
 * @param {Params} params
 * @param {string[]} kernels
 * @returns {RegressionState}
 */
export function fromParams(params, kernels) {
  const points = parseVectors(params.points)?.slice(0, MAX_POINTS).map(clampPoint);
  return {
    points: points ?? DEFAULT_POINTS.map(clampPoint),
    kernel: kernels.includes(params.kernel) ? params.kernel : DEFAULT_KERNEL,
    bandwidth: parseNumber(params.kernel_bandwidth, DEFAULT_BANDWIDTH, BANDWIDTH_RANGE),
    x: parseNumber(params.x, DEFAULT_X, X_RANGE),
  };
}

const formatPoints = (/** @type {number[][]} */ points) => points.map((point) => point.join()).join(";");

/** Return the URL parameters of a state; defaults are empty. @param {RegressionState} state */
export function toParams({ points, kernel, bandwidth, x }) {
  const text = formatPoints(points);
  return {
    points: text === formatPoints(DEFAULT_POINTS) ? "" : text,
    kernel: kernel === DEFAULT_KERNEL ? "" : kernel,
    kernel_bandwidth: bandwidth === DEFAULT_BANDWIDTH ? "" : bandwidth,
    x: x === DEFAULT_X ? "" : x,
  };
}

/** Clamp a point to the plot and round it to hundredths. @param {number[]} point @returns {[number, number]} */
export function clampPoint([x, y]) {
  const round = (/** @type {number} */ value, /** @type {number[]} */ [min, max]) => Math.round(100 * Math.min(Math.max(value, min), max)) / 100;
  return [round(x, X_RANGE), round(y, Y_RANGE)];
}

/** @param {RegressionState} state @param {number} index @param {number[]} to @returns {RegressionState} */
export function movePoint(state, index, to) {
  return { ...state, points: state.points.map((point, n) => (n === index ? clampPoint(to) : point)) };
}

/** Add a point, up to the maximum. @param {RegressionState} state @param {number[]} point @returns {RegressionState} */
export function addPoint(state, point) {
  return state.points.length < MAX_POINTS ? { ...state, points: [...state.points, clampPoint(point)] } : state;
}

/**
 * Remove a point, but not the last one.
 * @param {RegressionState} state
 * @param {number} index
 * @returns {RegressionState}
 */
export function removePoint(state, index) {
  return state.points.length > 1 ? { ...state, points: state.points.filter((_, n) => n !== index) } : state;
}

const sampleXs = Array.from({ length: CURVE_SAMPLES }, (_, n) => X_RANGE[0] + ((X_RANGE[1] - X_RANGE[0]) * n) / (CURVE_SAMPLES - 1));

/**
 * Return the body of the request to /api/attend: queries along the x axis, then x itself.
 * @param {RegressionState} state
 */
export function toRequest({ points, kernel, bandwidth, x }) {
  return {
    queries: [...sampleXs, x].map((query) => [query]),
    keys: points.map((point) => [point[0]]),
    values: points.map((point) => [point[1]]),
    score: kernel,
    bandwidth,
  };
}

/**
 * Return the curve, and weights and prediction at x. Where no point has weight there is no prediction: null.
 * @param {Pick<import("./formula.js").AttendResponse, "weights"|"context">} response
 */
export function parsePrediction({ weights, context }) {
  const hasWeight = (/** @type {number[]} */ row) => row.some((weight) => weight > 0);
  const predictions = context.map(([y], n) => (hasWeight(weights[n]) ? y : null));
  const last = weights.length - 1;
  return {
    curve: sampleXs.map((x, n) => {
      const y = predictions[n];
      return y === null ? null : [x, y];
    }),
    weights: weights[last],
    y: predictions[last],
  };
}
