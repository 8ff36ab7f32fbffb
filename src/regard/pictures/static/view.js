/** One head with its words on both sides: all that a drawing of it needs. */
import { groups } from "./groups.js";
import { reducedHead } from "./reduced.js";
import { wholeHead } from "./whole.js";

/**
 * @typedef {{queries: import("./groups.js").Group[], keys: import("./groups.js").Group[],
 *   gold: Set<string>, whole: boolean, step: number, maximum: number,
 *   at: (query: number, key: number) => number|null,
 *   row: (query: number) => {place: number, weight: number}[],
 *   column: (key: number) => {place: number, weight: number}[],
 *   leftOut: (query: number) => number,
 *   raster: (area: object, height: number, width: number) => Float32Array}} View
 */

/** Only whole weights can be summed over words or folded. */
export function canGroup(look) {
  return look.weights !== null;
}

/** Tell one head by pieces or by words. @returns {View} */
export function headView(trace, look, place, options = {}) {
  const told = canGroup(look) ? options : {};
  const queries = groups(trace.tokens[look.queries], told);
  const keys = groups(trace.tokens[look.keys], told);
  const head = look.weights ? wholeHead(look, place, queries, keys) : reducedHead(look, place);
  return { ...head, queries, keys, gold: goldCells(trace, look, queries, keys) };
}

/** Cells "query,key" of the gold alignment. */
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

/** Write a weight to two decimals; a plain 0 is one that is exactly zero, as behind a mask. */
export function number(weight, step) {
  if (weight >= 0.005) return weight.toFixed(2);
  return weight === 0 && step < 1e-4 ? "0" : "<0.01";
}
