/** Which source words the model attended to while it wrote each word, and the reverse. */
import { createHeadView } from "../../viz/static/headView.js";
import { parseTrace } from "../../viz/static/trace.js";

/**
 * @import { TraceRecord } from "../../viz/static/trace.js"
 * @typedef {{layer: number, head: number|null, weights: number[][]}} Alignment
 * Weights (target word, source word), of one head, or the mean over the heads of a layer.
 * @typedef {{index: number, weight: number}} Link
 */

const MIN_WEIGHT = 0.1; // of a word that is worth naming
const MAX_LINKS = 3;

/**
 * Return the weights between words of a trace's cross-attention.
 * @param {TraceRecord} record
 * @param {[layer: number, head: number]|null} alignmentHead null takes the mean over the last layer's heads
 * @returns {Alignment|null} null if the trace has no such map
 */
export function alignWords(record, alignmentHead) {
  const trace = parseTrace(record);
  const maps = trace.maps.filter(({ kind }) => kind === "cross");
  const map = alignmentHead ? maps.find(({ name }) => name === `cross.${alignmentHead[0]}`) : maps[maps.length - 1];
  if (!map) return null;
  const heads = alignmentHead ? [map.heads.indexOf(alignmentHead[1])] : [...map.heads.keys()];
  const [targets, sources] = [trace.tokens.target, trace.tokens.source].map(({ words }) => 1 + Math.max(-1, ...(words ?? []).map((word) => word ?? -1)));
  const weights = Array.from({ length: targets }, () => Array(sources).fill(0));
  for (const head of heads) {
    const view = createHeadView(trace, map, head, { mergeSubwords: true });
    view.queries.forEach(({ word: target }, query) => view.keys.forEach(({ word: source }, key) => {
      if (target !== null && source !== null) weights[target][source] += (view.at(query, key) ?? 0) / heads.length;
    }));
  }
  return { layer: Number(map.name.split(".")[1]), head: alignmentHead && alignmentHead[1], weights };
}

/**
 * Return the weights of one word with all words of the other side.
 * @param {Alignment} alignment
 * @param {"target"|"source"} side
 * @param {number} index
 */
export function weightsOf({ weights }, side, index) {
  return side === "target" ? (weights[index] ?? []) : weights.map((row) => row[index] ?? 0);
}

/** Return the largest weights that are worth naming, largest first. @param {number[]} weights @returns {Link[]} */
export function strongestLinks(weights) {
  return weights
    .map((weight, index) => ({ index, weight }))
    .filter(({ weight }) => weight >= MIN_WEIGHT)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_LINKS);
}
