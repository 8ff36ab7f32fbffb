/** View of one head: its weights between token groups, and the labels of both axes. Everything a drawing needs. */
import { createDenseHead } from "./denseHead.js";
import { createSparseHead } from "./sparseHead.js";
import { groupTokens } from "./tokenGroups.js";

/**
 * @import { GroupOptions, TokenGroup } from "./tokenGroups.js"
 * @import { Rows } from "./state.js"
 * @import { AttentionMap, TokenList, Trace } from "./trace.js"
 * @typedef {{index: number, weight: number}} Link to a query or key, by its index
 * @typedef {{top: number, left: number, bottom: number, right: number}} Region of cells; bottom and right are exclusive
 * @typedef {{isDense: boolean, step: number, maximum: number, at: (query: number, key: number) => number|null,
 *   rasterize: (region: Region, height: number, width: number) => Float32Array}} Weights
 * `step` is the quantization step; `at` returns null where a weight is not known.
 * @typedef {Weights & {row: (query: number) => Link[], column: (key: number) => Link[],
 *   remainder: (query: number) => number}} Head
 * `remainder` is the weight of a row that its links do not cover.
 * @typedef {{queries: TokenGroup[], keys: TokenGroup[], gold: Set<string>}} Axes
 * @typedef {Weights & Axes} MatrixData what a matrix is drawn from
 * @typedef {Head & Axes} HeadView
 */

const FULL_SCALE_FROM = 0.5; // as in regard.viz.matrix

/** Return whether tokens can be grouped, which needs all weights. @param {AttentionMap} map */
export function canGroup(map) {
  return map.weights !== null;
}

/**
 * Create the view of one head, given by its index among the heads of the map.
 * @param {Trace} trace
 * @param {AttentionMap} map
 * @param {number} head
 * @param {GroupOptions & {rows?: Rows}} [options] `rows: "input"` names the rows of a decoder by the tokens it reads
 * @returns {HeadView}
 */
export function createHeadView(trace, map, head, { rows = "output", ...options } = {}) {
  const grouping = canGroup(map) ? options : {};
  const groups = groupTokens(trace.tokens[map.queries], grouping);
  const keys = groupTokens(trace.tokens[map.keys], grouping);
  const weights = map.weights ? createDenseHead(map, head, groups, keys) : createSparseHead(map, head);
  const inputs = rows === "input" && map.query_inputs !== null ? trace.tokens[map.query_inputs] : null;
  const queries = inputs ? nameByInputs(groups, inputs, grouping) : groups;
  return { ...weights, queries, keys, gold: goldCells(trace, map, queries, keys) };
}

/**
 * Name groups of rows by what the decoder reads when it writes the first token of each.
 * @param {TokenGroup[]} rows
 * @param {TokenList} inputs
 * @param {GroupOptions} grouping
 * @returns {TokenGroup[]}
 */
function nameByInputs(rows, inputs, grouping) {
  const groupAt = new Map(groupTokens(inputs, grouping).flatMap((group) => group.positions.map((position) => [position, group])));
  return rows.map((row) => {
    const input = groupAt.get(row.positions[0]) ?? row;
    const word = inputs.words ? input.word : null; // without words it is not known which target word it is
    return { ...input, word, positions: row.positions };
  });
}

/**
 * Return the weight at the end of the colour scale: 1, or the largest weight if that is asked for, or if it is below 0.5.
 * @param {{maximum: number}} view
 * @param {boolean} [autoScale]
 */
export function scaleMaximum({ maximum }, autoScale = false) {
  return maximum > 0 && (autoScale || maximum < FULL_SCALE_FROM) ? maximum : 1;
}

/**
 * Return the cells of the gold alignment as "query,key".
 * @param {Trace} trace
 * @param {AttentionMap} map
 * @param {TokenGroup[]} queries
 * @param {TokenGroup[]} keys
 * @returns {Set<string>}
 */
function goldCells(trace, map, queries, keys) {
  const cells = new Set();
  if (!trace.gold || map.queries !== "target" || map.keys !== "source") return cells;
  const links = new Set(trace.gold.map(([source, target]) => `${target},${source}`));
  queries.forEach((query, i) => {
    if (query.word === null) return;
    keys.forEach((key, j) => {
      if (key.word !== null && links.has(`${query.word},${key.word}`)) cells.add(`${i},${j}`);
    });
  });
  return cells;
}

/**
 * Format a weight with two decimals. "0" is only written for an exact zero, as behind a mask: at 8 bits, a zero may
 * be a small weight that was rounded.
 * @param {number} weight
 * @param {number} step
 */
export function formatWeight(weight, step) {
  if (weight >= 0.005) return weight.toFixed(2);
  return weight === 0 && step < 1e-4 ? "0" : "<0.01";
}
