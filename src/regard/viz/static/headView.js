/** View of one head: its weights between token groups, and the labels of both axes. Everything a drawing needs. */
import { createDenseHead } from "./denseHead.js";
import { createSparseHead } from "./sparseHead.js";
import { groupTokens } from "./tokenGroups.js";

/**
 * @import { GroupOptions, TokenGroup } from "./tokenGroups.js"
 * @import { AttentionMap, Trace } from "./trace.js"
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

/** Return whether tokens can be grouped, which needs all weights. @param {AttentionMap} map */
export function canGroup(map) {
  return map.weights !== null;
}

/**
 * Create the view of one head, given by its index among the heads of the map.
 * @param {Trace} trace
 * @param {AttentionMap} map
 * @param {number} head
 * @param {GroupOptions} [options]
 * @returns {HeadView}
 */
export function createHeadView(trace, map, head, options = {}) {
  const grouping = canGroup(map) ? options : {};
  const queries = groupTokens(trace.tokens[map.queries], grouping);
  const keys = groupTokens(trace.tokens[map.keys], grouping);
  const weights = map.weights ? createDenseHead(map, head, queries, keys) : createSparseHead(map, head);
  return { ...weights, queries, keys, gold: goldCells(trace, map, queries, keys) };
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
