/** The attentions of a model: looks of one kind between the same two token lists, layer by layer. */

/** @type {Object<string, string>} */
const NAMES = {
  "self source": "encoder",
  "causal target": "decoder",
  "self target": "decoder",
  "cross target": "cross",
};

/**
 * @import { Look, Trace } from "./trace.js"
 * @typedef {{name: string, kind: string, queries: string, keys: string, looks: Look[]}} Stack
 */

/** Sort looks into stacks, named as in regard.pictures.view. @param {Trace} trace @returns {Stack[]} */
export function stacks(trace) {
  const found = /** @type {Map<string, Look[]>} */ (new Map());
  for (const look of trace.looks) {
    const key = JSON.stringify([look.kind, look.queries, look.keys]);
    found.set(key, [...(found.get(key) ?? []), look]);
  }
  const groups = [...found.values()];
  const named = /** @type {Stack[]} */ ([]);
  for (const looks of groups) {
    const { kind, queries, keys } = looks[0];
    const several = groups.filter((other) => other[0].kind === kind).length > 1;
    const alone = several ? `${kind} ${queries}-${keys}` : kind;
    const known = "source" in trace.tokens ? NAMES[`${kind} ${queries}`] : undefined;
    const taken = named.some((stack) => stack.name === known);
    named.push({ name: known && !taken ? known : alone, kind, queries, keys, looks });
  }
  return named;
}
