/** The formula of one cell, filled with its numbers: score, softmax and what it brings to the context. */
import { factor, low, plain, vector } from "./format.js";

/**
 * @typedef {{queries: number[][], keys: number[][], scores: (number|null)[][], mask: boolean[][],
 *   biased_scores: (number|null)[][], weights: number[][], context: number[][],
 *   formula: {name: string, parameters: Parameters}}} Answer
 * @typedef {{bandwidth?: number, temperature?: number, slope?: number}} Numbers
 * @typedef {Numbers & {W?: number[][], U?: number[][], v?: number[]}} Parameters
 * @typedef {{q: number[], k: number[], names: {q: string, k: string}, parameters: Parameters, bandwidth: number}} Cell
 * @typedef {"score"|"shift"|"hidden"|"weight"|"context"} Step
 */

/** @param {number[]} a @param {number[]} b */
const dot = (a, b) => a.reduce((sum, value, n) => sum + value * b[n], 0);
/** @param {number[][]|undefined} matrix @param {number[]} column */
const times = (matrix, column) => (matrix ?? []).map((row) => dot(row, column));
/** @param {number[]} a @param {number[]} b */
const products = (a, b) => a.map((value, n) => `${factor(value)}·${factor(b[n])}`).join(" + ");
/** @param {number[]} a @param {number[]} b */
const squares = (a, b) => a.map((value, n) => `${factor(value - b[n])}²`).join(" + ");

/** How each score is written, with letters and with numbers. @type {Object<string, (cell: Cell) => [string, string|null]>} */
const SCORES = {
  dot: ({ q, k, names }) => [`${names.q}·${names.k}`, products(q, k)],
  scaled_dot: ({ q, k, names }) => [
    `${names.q}·${names.k} / √${q.length}`,
    `(${products(q, k)}) / ${plain(Math.sqrt(q.length))}`,
  ],
  cosine: ({ q, k, names }) => [
    `${names.q}·${names.k} / |${names.q}||${names.k}|`,
    `${factor(dot(q, k))} / (${plain(Math.hypot(...q))}·${plain(Math.hypot(...k))})`,
  ],
  gaussian: ({ q, k, names, bandwidth }) => [
    `−|${names.q} − ${names.k}|² / 2b²`,
    `−(${squares(q, k)}) / (2·${plain(bandwidth)}²)`,
  ],
  bilinear: ({ q, k, names, parameters }) => [
    `${names.q}·W ${names.k}`,
    `${vector(q)}·${vector(times(parameters.W, k))}`,
  ],
  additive: ({ q, k, names, parameters }) => {
    const sum = times(parameters.W, q).map((value, n) => value + times(parameters.U, k)[n]);
    return [`v·tanh(W ${names.q} + U ${names.k})`, `${vector(parameters.v ?? [])}·tanh${vector(sum)}`];
  },
  average: () => ["log 1", null],
  boxcar: (cell) => ["log [distance ≤ b]", kernelled(cell, (far) => `log [${plain(far)} ≤ 1]`)],
  triangular: (cell) => [`log (1 − |${cell.names.q} − ${cell.names.k}| / b)`, kernelled(cell, (far) => `log (1 − ${plain(far)})`)],
  epanechnikov: (cell) => [`log (1 − |${cell.names.q} − ${cell.names.k}|² / b²)`, kernelled(cell, (far) => `log (1 − ${plain(far)}²)`)],
};

/** @param {Cell} cell @param {(far: number) => string} write */
function kernelled({ q, k, bandwidth }, write) {
  return write(Math.hypot(...q.map((value, n) => value - k[n])) / bandwidth);
}

/**
 * Tell one cell step by step; each line is `[name, text]`, and the names are the texts' own.
 * @param {Answer} answer
 * @param {number[][]} values
 * @param {number} query
 * @param {number} key
 * @returns {{step: Step, text: string}[]}
 */
export function cellFormula(answer, values, query, key) {
  const lines = [line("score", scored(answer, query, key))];
  const shift = shifted(answer, query, key);
  if (shift) lines.push(line("shift", shift));
  if (!answer.mask[query][key]) lines.push(line("hidden", `e^−∞ = 0`));
  lines.push(line("weight", weighed(answer, query, key)));
  lines.push(line("context", gathered(answer, values, query)));
  return lines;
}

/** @param {Step} step @param {string} text */
const line = (step, text) => ({ step, text });

/** @param {Answer} answer @param {number} query @param {number} key */
function scored({ queries, keys, scores, formula }, query, key) {
  const names = { q: `q${low(query + 1)}`, k: `k${low(key + 1)}` };
  const { name, parameters } = formula;
  const cell = { q: queries[query], k: keys[key], names, parameters, bandwidth: parameters.bandwidth ?? 1 };
  const [letters, numbers] = SCORES[name]?.(cell) ?? [`${names.q}, ${names.k}`, null];
  return [letters, numbers, plain(scores[query][key])].filter((part) => part !== null).join(" = ");
}

/**
 * The temperature and the bias of positions, if they change anything.
 * @param {Answer} answer
 * @param {number} query
 * @param {number} key
 */
function shifted({ scores, biased_scores: biased, formula }, query, key) {
  const { temperature = 1, slope } = formula.parameters;
  if (temperature === 1 && slope === undefined) return null;
  const score = plain(scores[query][key]);
  const divided = temperature === 1 ? score : `${score} / ${plain(temperature)}`;
  const bias = slope === undefined ? "" : ` − ${plain(slope)}·${Math.abs(query - key)}`;
  return `${divided}${bias} = ${plain(biased[query][key])}`;
}

/** @param {Answer} answer @param {number} query @param {number} key */
function weighed({ mask: allowed, biased_scores: biased, weights }, query, key) {
  const seen = biased[query].filter((score, n) => allowed[query][n] && score !== null);
  if (!seen.length) return "0";
  const sum = seen.map((score) => `e^${plain(score)}`).join(" + ");
  const own = allowed[query][key] ? `e^${plain(biased[query][key])}` : "0";
  return `${own} / (${sum}) = ${plain(weights[query][key], 3)}`;
}

/** @param {Answer} answer @param {number[][]} values @param {number} query */
function gathered({ weights, context }, values, query) {
  const parts = weights[query].flatMap((weight, n) => (weight >= 0.0005 ? [`${plain(weight)}·${vector(values[n])}`] : []));
  return `${parts.join(" + ") || "0"} = ${vector(context[query])}`;
}
