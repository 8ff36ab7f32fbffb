/** One head with its words on both sides: all that a drawing of it needs. */
import { groups } from "./tokenGroups.js";
import { reducedHead } from "./sparseHead.js";
import { wholeHead } from "./denseHead.js";

/**
 * @import { Group } from "./tokenGroups.js"
 * @import { Look, Trace } from "./trace.js"
 * @typedef {{place: number, weight: number}} Link
 * @typedef {{top: number, left: number, bottom: number, right: number}} Area
 * @typedef {{whole: boolean, step: number, maximum: number, at: (query: number, key: number) => number|null,
 *   raster: (area: Area, height: number, width: number) => Float32Array}} Weights
 * @typedef {Weights & {row: (query: number) => Link[], column: (key: number) => Link[],
 *   leftOut: (query: number) => number}} Head
 * @typedef {{queries: Group[], keys: Group[], gold: Set<string>}} Words
 * @typedef {Weights & Words} Cells what a matrix is drawn from
 * @typedef {Head & Words} View
 */

/** Only whole weights can be summed over words or folded. @param {Look} look */
export function canGroup(look) {
  return look.weights !== null;
}

/**
 * Tell one head by pieces or by words.
 * @param {Trace} trace
 * @param {Look} look
 * @param {number} place
 * @param {{words?: boolean, folded?: boolean}} [options]
 * @returns {View}
 */
export function headView(trace, look, place, options = {}) {
  const told = canGroup(look) ? options : {};
  const queries = groups(trace.tokens[look.queries], told);
  const keys = groups(trace.tokens[look.keys], told);
  const head = look.weights ? wholeHead(look, place, queries, keys) : reducedHead(look, place);
  return { ...head, queries, keys, gold: goldCells(trace, look, queries, keys) };
}

/**
 * Cells "query,key" of the gold alignment.
 * @param {Trace} trace
 * @param {Look} look
 * @param {Group[]} queries
 * @param {Group[]} keys
 * @returns {Set<string>}
 */
function goldCells(trace, look, queries, keys) {
  const cells = new Set();
  if (!trace.gold || look.queries !== "target" || look.keys !== "source") return cells;
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
 * Write a weight to two decimals; a plain 0 is one that is exactly zero, as behind a mask.
 * @param {number} weight
 * @param {number} step
 */
export function number(weight, step) {
  if (weight >= 0.005) return weight.toFixed(2);
  return weight === 0 && step < 1e-4 ? "0" : "<0.01";
}
