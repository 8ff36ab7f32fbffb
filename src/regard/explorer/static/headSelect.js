/** The heads of a trace, to choose one and see it. */
import { element } from "../viz/controls.js";
import { stacks } from "../viz/mapGroups.js";
import { initial } from "../viz/state.js";
import { readTrace } from "../viz/trace.js";
import { headView } from "../viz/headView.js";
import { TEXTS } from "../viz/i18n.js";
import { chooser, field } from "./components.js";

/**
 * @import { Stack } from "../viz/mapGroups.js"
 * @import { Start } from "../viz/state.js"
 * @import { Trace, TraceRecord } from "../viz/trace.js"
 * @typedef {{trace: Trace, stacks: Stack[]}} Heads
 * @typedef {{kind: string, layer: number, head: number}} Place of a head
 */

/** Read a trace once, to see many of its heads. @param {TraceRecord} record @returns {Heads} */
export function readHeads(record) {
  const trace = readTrace(record);
  return { trace, stacks: stacks(trace) };
}

/**
 * Give one head as a view, with the names of its sides; what is not there is the nearest that is.
 * @param {Heads} heads
 * @param {Start} start
 * @param {"en"|"zh"} language
 */
export function headOf(heads, start, language) {
  const texts = TEXTS[language];
  const state = initial(heads.stacks, start);
  const look = heads.stacks[state.tab].looks[state.layer];
  const names = { queries: `${look.queries} · ${texts.queries}`, keys: `${look.keys} · ${texts.keys}` };
  return { view: headView(heads.trace, look, state.head, { words: true }), names, start: placeOf(state, heads) };
}

/** @param {import("../viz/state.js").State} state @param {Heads} heads @returns {Place} */
function placeOf({ tab, layer, head }, { stacks: all }) {
  return { kind: all[tab].name, layer, head: all[tab].looks[layer].heads[head] };
}

/**
 * Choosers of attention, layer and head. `choose(start)` is told each choice.
 * @param {import("./app.js").Context} context
 * @param {Heads} heads
 * @param {Start} start
 * @param {(start: Place) => void} choose
 */
export function headChooser(context, heads, start, choose) {
  const { texts } = context;
  const state = initial(heads.stacks, start);
  const stack = heads.stacks[state.tab];
  const numbers = (/** @type {unknown[]} */ list) => list.map((_, n) => String(n));
  const now = placeOf(state, heads);
  const kinds = heads.stacks.map(({ name }) => name);
  const layers = numbers(stack.looks);
  const all = stack.looks[state.layer].heads.map(String);
  const take = (/** @type {Partial<Place>} */ change) => choose({ ...now, ...change });
  return element("div", { className: "row heads" },
    field(texts.attention, chooser(kinds, now.kind, (kind) => take({ kind }), texts.attentions)),
    field(texts.layer, chooser(layers, String(now.layer), (layer) => take({ layer: Number(layer) }))),
    field(texts.head, chooser(all, String(now.head), (head) => take({ head: Number(head) }))));
}
