/** Formula of one cell of attention with its numbers: score, softmax, and the context of the query. */
import { formatFactor, formatNumber, formatSubscript, formatVector } from "./format.js";

/**
 * @typedef {{queries: number[][], keys: number[][], scores: (number|null)[][], mask: boolean[][],
 *   biased_scores: (number|null)[][], weights: number[][], context: number[][],
 *   formula: {name: string, parameters: Parameters}}} AttendResponse
 * `biased_scores` are the scores with temperature and positional bias; `null` is −∞; True in `mask` means may attend.
 * @typedef {{bandwidth?: number, temperature?: number, slope?: number, W?: number[][], U?: number[][], v?: number[]}} Parameters
 * @typedef {{q: number[], k: number[], symbols: {q: string, k: string}, parameters: Parameters, bandwidth: number}} Cell
 * @typedef {"score"|"adjusted"|"masked"|"weight"|"context"} Step
 */

/** @param {number[]} a @param {number[]} b */
const dot = (a, b) => a.reduce((sum, value, n) => sum + value * b[n], 0);
/** @param {number[][]|undefined} matrix @param {number[]} vector */
const multiply = (matrix, vector) => (matrix ?? []).map((row) => dot(row, vector));
/** @param {number[]} a @param {number[]} b */
const formatProducts = (a, b) => a.map((value, n) => `${formatFactor(value)}·${formatFactor(b[n])}`).join(" + ");
/** @param {number[]} a @param {number[]} b */
const formatSquares = (a, b) => a.map((value, n) => `${formatFactor(value - b[n])}²`).join(" + ");
/** Distance in units of the bandwidth. @param {Cell} cell */
const relativeDistance = ({ q, k, bandwidth }) => formatNumber(Math.hypot(...q.map((value, n) => value - k[n])) / bandwidth);

/** Each score function in symbols and in numbers. @type {Object<string, (cell: Cell) => [string, string|null]>} */
const SCORE_FORMULAS = {
  dot: ({ q, k, symbols }) => [`${symbols.q}·${symbols.k}`, formatProducts(q, k)],
  scaled_dot: ({ q, k, symbols }) => [
    `${symbols.q}·${symbols.k} / √${q.length}`,
    `(${formatProducts(q, k)}) / ${formatNumber(Math.sqrt(q.length))}`,
  ],
  cosine: ({ q, k, symbols }) => [
    `${symbols.q}·${symbols.k} / |${symbols.q}||${symbols.k}|`,
    `${formatFactor(dot(q, k))} / (${formatNumber(Math.hypot(...q))}·${formatNumber(Math.hypot(...k))})`,
  ],
  gaussian: ({ q, k, symbols, bandwidth }) => [
    `−|${symbols.q} − ${symbols.k}|² / 2b²`,
    `−(${formatSquares(q, k)}) / (2·${formatNumber(bandwidth)}²)`,
  ],
  bilinear: ({ q, k, symbols, parameters }) => [
    `${symbols.q}·W ${symbols.k}`,
    `${formatVector(q)}·${formatVector(multiply(parameters.W, k))}`,
  ],
  additive: ({ q, k, symbols, parameters }) => {
    const [projectedQuery, projectedKey] = [multiply(parameters.W, q), multiply(parameters.U, k)];
    const sum = projectedQuery.map((value, n) => value + projectedKey[n]);
    return [`v·tanh(W ${symbols.q} + U ${symbols.k})`, `${formatVector(parameters.v ?? [])}·tanh${formatVector(sum)}`];
  },
  average: () => ["log 1", null],
  boxcar: (cell) => [`log [|${cell.symbols.q} − ${cell.symbols.k}| ≤ b]`, `log [${relativeDistance(cell)} ≤ 1]`],
  triangular: (cell) => [`log (1 − |${cell.symbols.q} − ${cell.symbols.k}| / b)`, `log (1 − ${relativeDistance(cell)})`],
  epanechnikov: (cell) => [`log (1 − |${cell.symbols.q} − ${cell.symbols.k}|² / b²)`, `log (1 − ${relativeDistance(cell)}²)`],
};

/**
 * Return the computation of one cell, a line per step.
 * @param {AttendResponse} response
 * @param {number[][]} values
 * @param {number} query
 * @param {number} key
 * @returns {{step: Step, text: string}[]}
 */
export function formulaOfCell(response, values, query, key) {
  const lines = [{ step: /** @type {Step} */ ("score"), text: formatScore(response, query, key) }];
  const adjustment = formatAdjustment(response, query, key);
  if (adjustment) lines.push({ step: "adjusted", text: adjustment });
  if (!response.mask[query][key]) lines.push({ step: "masked", text: "e^−∞ = 0" });
  lines.push({ step: "weight", text: formatSoftmax(response, query, key) });
  lines.push({ step: "context", text: formatContext(response, values, query) });
  return lines;
}

/** @param {AttendResponse} response @param {number} query @param {number} key */
function formatScore({ queries, keys, scores, formula }, query, key) {
  const symbols = { q: `q${formatSubscript(query + 1)}`, k: `k${formatSubscript(key + 1)}` };
  const { name, parameters } = formula;
  const cell = { q: queries[query], k: keys[key], symbols, parameters, bandwidth: parameters.bandwidth ?? 1 };
  const [symbolic, numeric] = SCORE_FORMULAS[name]?.(cell) ?? [`${symbols.q}, ${symbols.k}`, null];
  return [symbolic, numeric, formatNumber(scores[query][key])].filter((part) => part !== null).join(" = ");
}

/**
 * Return how temperature and positional bias (ALiBi) change the score, or null if they do not.
 * @param {AttendResponse} response
 * @param {number} query
 * @param {number} key
 */
function formatAdjustment({ scores, biased_scores: biased, formula }, query, key) {
  const { temperature = 1, slope } = formula.parameters;
  if (temperature === 1 && slope === undefined) return null;
  const score = formatNumber(scores[query][key]);
  const quotient = temperature === 1 ? score : `${score} / ${formatNumber(temperature)}`;
  const bias = slope === undefined ? "" : ` − ${formatNumber(slope)}·${Math.abs(query - key)}`;
  return `${quotient}${bias} = ${formatNumber(biased[query][key])}`;
}

/** @param {AttendResponse} response @param {number} query @param {number} key */
function formatSoftmax({ mask, biased_scores: biased, weights }, query, key) {
  const visible = biased[query].filter((score, n) => mask[query][n] && score !== null);
  if (!visible.length) return "0";
  const denominator = visible.map((score) => `e^${formatNumber(score)}`).join(" + ");
  const numerator = mask[query][key] ? `e^${formatNumber(biased[query][key])}` : "0";
  return `${numerator} / (${denominator}) = ${formatNumber(weights[query][key], 3)}`;
}

/** @param {AttendResponse} response @param {number[][]} values @param {number} query */
function formatContext({ weights, context }, values, query) {
  const terms = weights[query].flatMap((weight, n) => (weight >= 0.0005 ? [`${formatNumber(weight)}·${formatVector(values[n])}`] : []));
  return `${terms.join(" + ") || "0"} = ${formatVector(context[query])}`;
}
