/** The heads of a trace, to choose one and see it. */
import { element } from "../pictures/controls.js";
import { stacks } from "../pictures/stacks.js";
import { initial, told } from "../pictures/state.js";
import { readTrace } from "../pictures/trace.js";
import { headView } from "../pictures/view.js";
import { TEXTS } from "../pictures/language.js";
import { chooser, field } from "./parts.js";

/**
 * Read a trace once, to see many of its heads.
 * @returns {{trace: import("../../pictures/static/trace.js").Trace, stacks: import("../../pictures/static/stacks.js").Stack[]}}
 */
export function readHeads(record) {
  const trace = readTrace(record);
  return { trace, stacks: stacks(trace) };
}

/** Give one head as a view, with the names of its sides; what is not there is the nearest that is. */
export function headOf(heads, start, language) {
  const texts = TEXTS[language];
  const state = initial(heads.stacks, start);
  const look = heads.stacks[state.tab].looks[state.layer];
  const names = { queries: `${look.queries} · ${texts.queries}`, keys: `${look.keys} · ${texts.keys}` };
  const { kind, layer, head } = told(state, heads.stacks);
  return { view: headView(heads.trace, look, state.head, { words: true }), names, start: { kind, layer, head } };
}

/** Choosers of attention, layer and head. `choose(start)` is told each choice. */
export function headChooser(context, heads, start, choose) {
  const { texts } = context;
  const state = initial(heads.stacks, start);
  const stack = heads.stacks[state.tab];
  const numbers = (list) => list.map((_, n) => String(n));
  const now = told(state, heads.stacks);
  const kinds = heads.stacks.map(({ name }) => name);
  const layers = numbers(stack.looks);
  const all = stack.looks[state.layer].heads.map(String);
  const take = (change) => choose({ kind: now.kind, layer: now.layer, head: now.head, ...change });
  return element("div", { className: "row heads" },
    field(texts.attention, chooser(kinds, now.kind, (kind) => take({ kind }), texts.attentions)),
    field(texts.layer, chooser(layers, String(now.layer), (layer) => take({ layer: Number(layer) }))),
    field(texts.head, chooser(all, String(now.head), (head) => take({ head: Number(head) }))));
}
