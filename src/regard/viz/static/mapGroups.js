/** Map groups: attention maps of one kind between the same two token lists, one per layer. A tab of the viewer each. */

/** Names of a translation model's groups, by kind and queries. @type {Object<string, string>} */
const TRANSLATION_NAMES = {
  "self source": "encoder",
  "causal target": "decoder",
  "self target": "decoder",
  "cross target": "cross",
};

/**
 * @import { AxisNames } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { AttentionMap, Trace } from "./trace.js"
 * @typedef {{name: string, kind: string, queries: string, keys: string, maps: AttentionMap[]}} MapGroup
 */

/**
 * Group the maps of a trace, in order of appearance; names as in regard.viz.selection.
 * @param {Trace} trace
 * @returns {MapGroup[]}
 */
export function groupMaps(trace) {
  const byKind = /** @type {Map<string, AttentionMap[]>} */ (new Map());
  for (const map of trace.maps) {
    const key = JSON.stringify([map.kind, map.queries, map.keys]);
    byKind.set(key, [...(byKind.get(key) ?? []), map]);
  }
  const lists = [...byKind.values()];
  const groups = /** @type {MapGroup[]} */ ([]);
  for (const maps of lists) {
    const { kind, queries, keys } = maps[0];
    const isAmbiguous = lists.filter((other) => other[0].kind === kind).length > 1;
    const genericName = isAmbiguous ? `${kind} ${queries}-${keys}` : kind;
    const shortName = "source" in trace.tokens ? TRANSLATION_NAMES[`${kind} ${queries}`] : undefined;
    const isTaken = groups.some((group) => group.name === shortName);
    groups.push({ name: shortName && !isTaken ? shortName : genericName, kind, queries, keys, maps });
  }
  return groups;
}

/**
 * Return the labels of a map's axes, such as "target · queries".
 * @param {AttentionMap} map
 * @param {Texts} texts
 * @returns {AxisNames}
 */
export function axisNamesOf({ queries, keys }, texts) {
  const nameOf = (/** @type {string} */ tokenList) => texts.tokenLists[tokenList] ?? tokenList;
  return { queries: `${nameOf(queries)} · ${texts.queries}`, keys: `${nameOf(keys)} · ${texts.keys}` };
}
