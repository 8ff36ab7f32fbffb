/** Map groups: attention maps of one kind between the same two token lists, one per layer. A tab of the viewer each. */

/** Names of a translation model's groups, by kind and queries. @type {Object<string, string>} */
const TRANSLATION_NAMES = {
  "self source": "encoder",
  "causal decoder_input": "decoder",
  "self decoder_input": "decoder",
  "causal target": "decoder",
  "self target": "decoder",
  "cross target": "cross",
};

/**
 * @import { AxisNames } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Rows } from "./state.js"
 * @import { AttentionMap, SelectedHead, Trace } from "./trace.js"
 * @typedef {{name: string, kind: string, queries: string, keys: string, maps: AttentionMap[],
 *   selected: SelectedHead|null}} MapGroup
 * `selected` is the head to look at first.
 */

/**
 * Group the maps of a trace, in order of appearance; names as in regard.viz.selected_head.
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
    const name = shortName && !isTaken ? shortName : genericName;
    const selected = trace.selectedHeads.find((head) => head.kind === name) ?? null;
    groups.push({ name, kind, queries, keys, maps, selected });
  }
  return groups;
}

/**
 * Return what a row and what a column of a map is, in words; as in regard.viz.selected_head.
 * @param {AttentionMap} map
 * @param {Texts} texts
 * @param {Rows} [rows]
 * @returns {AxisNames}
 */
export function axisNamesOf(map, texts, rows = "output") {
  const role = rowRoleOf(map, rows);
  return { queries: texts[role], keys: role === "query" ? texts.key : texts.reading };
}

/**
 * Return the role of the rows of a map, which names a text of both locales.
 * @param {AttentionMap} map
 * @param {Rows} rows
 * @returns {"decoderInput"|"writing"|"query"}
 */
export function rowRoleOf({ kind, queries, query_inputs }, rows) {
  if (rows === "input" && query_inputs !== null) return "decoderInput";
  return kind === "cross" && queries === "target" ? "writing" : "query";
}
