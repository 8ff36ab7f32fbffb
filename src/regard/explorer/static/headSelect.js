/** Selection of one head of a trace: its view, selects for attention, layer and head, and a switch for its rows. */
import { createElement } from "../viz/dom.js";
import { createHeadView } from "../viz/headView.js";
import { TEXTS as VIEWER_TEXTS } from "../viz/i18n.js";
import { axisNamesOf, groupMaps } from "../viz/mapGroups.js";
import { createState } from "../viz/state.js";
import { parseTrace } from "../viz/trace.js";
import { createField, createSelect } from "./components.js";

/**
 * @import { Language } from "../viz/i18n.js"
 * @import { MapGroup } from "../viz/mapGroups.js"
 * @import { Rows, State, ViewState } from "../viz/state.js"
 * @import { Trace, TraceRecord } from "../viz/trace.js"
 * @typedef {{trace: Trace, groups: MapGroup[]}} TraceHeads
 * @typedef {{kind: string, layer: number, head: number}} HeadPosition
 * @typedef {ReturnType<typeof selectHead>} SelectedHead
 */

const ROWS = /** @type {const} */ (["output", "input"]);

/** Parse a trace once, to show several of its heads. @param {TraceRecord} record @returns {TraceHeads} */
export function parseHeads(record) {
  const trace = parseTrace(record);
  return { trace, groups: groupMaps(trace) };
}

/**
 * Return the view, axis names, position and title of a head; a position out of range gives the nearest head, and one that
 * is not given the head to look at first. `hasInputs` says whether its rows can be named by the words read.
 * @param {TraceHeads} heads
 * @param {ViewState} viewState
 * @param {Language} language
 */
export function selectHead({ trace, groups }, viewState, language) {
  const texts = VIEWER_TEXTS[language];
  const state = createState(groups, viewState);
  const map = groups[state.tab].maps[state.layer];
  const { rows } = state;
  const axisNames = axisNamesOf(map, texts, rows);
  const position = positionOf(state, groups);
  const title = `${texts.groups[position.kind] ?? position.kind} · ${texts.headPosition(position.layer, position.head)}`;
  const view = createHeadView(trace, map, state.head, { rows, mergeSubwords: true });
  return { view, axisNames, position, title, hasInputs: map.query_inputs !== null };
}

/** @param {State} state @param {MapGroup[]} groups @returns {HeadPosition} */
function positionOf({ tab, layer, head }, groups) {
  return { kind: groups[tab].name, layer, head: groups[tab].maps[layer].heads[head] };
}

/**
 * Create the selects of attention, layer and head.
 * @param {import("./app.js").Context} context
 * @param {TraceHeads} heads
 * @param {ViewState} viewState
 * @param {(position: HeadPosition) => void} onSelect
 */
export function createHeadSelect({ texts, language }, { groups }, viewState, onSelect) {
  const state = createState(groups, viewState);
  const { maps } = groups[state.tab];
  const position = positionOf(state, groups);
  const kinds = groups.map(({ name }) => name);
  const layers = maps.map((_, layer) => String(layer));
  const heads = maps[state.layer].heads.map(String);
  const change = (/** @type {Partial<HeadPosition>} */ changes) => onSelect({ ...position, ...changes });
  return createElement("div", { className: "row head-select" },
    createField(texts.attention, createSelect(kinds, position.kind, (kind) => change({ kind }), VIEWER_TEXTS[language].groups)),
    createField(texts.layer, createSelect(layers, String(position.layer), (layer) => change({ layer: Number(layer) }))),
    createField(texts.head, createSelect(heads, String(position.head), (head) => change({ head: Number(head) }))));
}

/**
 * Create the switch between output and input words as names of the rows.
 * @param {Language} language
 * @param {string|undefined} initial
 * @param {(rows: Rows) => void} onSelect
 */
export function createRowsSwitch(language, initial, onSelect) {
  const texts = VIEWER_TEXTS[language];
  const buttons = ROWS.map((rows) => createElement("button", { type: "button", className: "segment", onclick: () => select(rows) }, texts.rowNames[rows]));
  const group = createElement("div", { className: "segmented-control", role: "group", "aria-label": texts.rowsHelp }, ...buttons);

  /** @param {Rows} pressed */
  function press(pressed) {
    ROWS.forEach((rows, n) => buttons[n].setAttribute("aria-pressed", String(rows === pressed)));
  }

  /** @param {Rows} rows */
  function select(rows) {
    press(rows);
    onSelect(rows);
  }

  press(initial === "input" ? "input" : "output");
  return createElement("div", { className: "rows-field" }, createElement("span", {}, texts.rowsLabel), group);
}
