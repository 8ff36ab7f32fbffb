/** Viewer state, and the reducer that updates it. States are immutable: every action returns a new one. */

/**
 * @import { MapGroup } from "./mapGroups.js"
 * @typedef {"output"|"input"} Rows which token names a row of a decoder's cross-attention: the one written there, or read
 * @typedef {{tab: number, layer: number, head: number, mode: "matrix"|"lines"|"image", rows: Rows, mergeSubwords: boolean,
 *   collapseSpecial: boolean, autoScale: boolean, threshold: number, opacity: number, query: number|null, key: number|null,
 *   locked: boolean, zoom: Zoom, scroll: number}} State
 * `tab`, `layer` and `head` are indices; a map may hold only some of the model's heads. `query` and `key` are selected,
 * and stay so while `locked`.
 * @typedef {{scale: number, x: number, y: number}} Zoom with the first visible column and row
 * @typedef {{query: number|null, key: number|null}} Selection
 * @typedef {{queries: number, keys: number}} AxisLengths
 * @typedef {{type: "tab"|"layer"|"head", to?: number, by?: number}|{type: "selectHead", layer: number, head: number}
 *   |{type: "mode", to: State["mode"]}|{type: "rows", to: Rows}|{type: "mergeSubwords"|"collapseSpecial"|"autoScale"|"clear"}
 *   |{type: "threshold"|"opacity"|"scroll", to: number}|({type: "hover"|"lock"} & Selection)
 *   |{type: "move", query?: number, key?: number}|{type: "zoom", to: Zoom}} Action
 * @typedef {Action|{type: "toggleLock"|"resetZoom"}|{type: "zoomBy", factor: number, at?: {x: number, y: number}}} Command
 * An action, or a command that the viewer resolves to one from what is on the screen.
 */

/** @type {Readonly<Zoom>} */
export const UNZOOMED = Object.freeze({ scale: 1, x: 0, y: 0 });
export const DEFAULT_THRESHOLD = 0.02;
export const DEFAULT_OPACITY = 0.6;
const NO_SELECTION = { query: null, key: null, locked: false };

/**
 * The part of the state that links and saved pages hold. `kind` is the name of a map group, `layer` an index, and `head`
 * the model's index of the head.
 * @typedef {{kind?: string, layer?: number, head?: number|null, mode?: string, rows?: string, mergeSubwords?: boolean,
 *   collapseSpecial?: boolean, autoScale?: boolean, threshold?: number, opacity?: number, query?: number|null, key?: number|null}} ViewState
 */

/**
 * Create the initial state. Without a view state it shows the selected head of cross-attention, or of the first group if
 * there is none.
 * @param {MapGroup[]} groups
 * @param {ViewState} [viewState]
 * @returns {State}
 */
export function createState(groups, viewState = {}) {
  const tab = Math.max(0, groups.findIndex((group) => group.name === (viewState.kind ?? "cross")));
  const { maps, selected } = groups[tab];
  const layer = clampIndex(viewState.layer ?? selected?.layer ?? 0, maps.length);
  const defaultHead = layer === selected?.layer ? selected.head : -1;
  const head = Math.max(0, maps[layer].heads.indexOf(viewState.head ?? defaultHead));
  const [query, key] = [viewState.query ?? null, viewState.key ?? null];
  return {
    tab,
    layer,
    head,
    mode: viewState.mode === "lines" || viewState.mode === "image" ? viewState.mode : "matrix",
    rows: viewState.rows === "input" ? "input" : "output",
    mergeSubwords: Boolean(viewState.mergeSubwords),
    collapseSpecial: Boolean(viewState.collapseSpecial),
    autoScale: Boolean(viewState.autoScale),
    threshold: Math.min(Math.max(viewState.threshold ?? DEFAULT_THRESHOLD, 0), 1),
    opacity: Math.min(Math.max(viewState.opacity ?? DEFAULT_OPACITY, 0), 1),
    query,
    key,
    locked: query !== null || key !== null,
    zoom: UNZOOMED,
    scroll: 0,
  };
}

/**
 * Return the view state from which `createState` restores a state; a default threshold is left out.
 * @param {State} state
 * @param {MapGroup[]} groups
 * @returns {ViewState}
 */
export function toViewState(state, groups) {
  const { tab, layer, head, mode, rows, mergeSubwords, collapseSpecial, autoScale, threshold, opacity, locked } = state;
  const { name, maps } = groups[tab];
  /** @type {ViewState} */
  const viewState = { kind: name, layer, head: maps[layer].heads[head], mode, rows, mergeSubwords, collapseSpecial, autoScale };
  if (threshold !== DEFAULT_THRESHOLD) viewState.threshold = threshold;
  if (opacity !== DEFAULT_OPACITY) viewState.opacity = opacity;
  return locked ? { ...viewState, query: state.query, key: state.key } : viewState;
}

/**
 * Leave the head out of a view state if it is the one that the viewer selects anyway: a link to it need not name it, and
 * the next sentence may have another one.
 * @param {ViewState} viewState
 * @param {MapGroup[]} groups
 * @returns {ViewState}
 */
export function withoutDefaultHead({ kind, layer, head, ...others }, groups) {
  const initial = toViewState(createState(groups), groups);
  const isDefault = kind === initial.kind && layer === initial.layer && head === initial.head;
  return isDefault ? others : { kind, layer, head, ...others };
}

/** Drop a selection that is out of range. @param {State} state @param {AxisLengths} lengths @returns {State} */
export function clampSelection(state, lengths) {
  /** @param {number|null} index @param {number} count */
  const inRange = (index, count) => (index === null || index < count ? index : null);
  const [query, key] = [inRange(state.query, lengths.queries), inRange(state.key, lengths.keys)];
  return query === null && key === null ? { ...state, ...NO_SELECTION } : { ...state, query, key };
}

/**
 * Return the state after an action. `lengths` are those of the axes on the screen.
 * @param {State} state
 * @param {Action} action
 * @param {MapGroup[]} groups
 * @param {AxisLengths} lengths
 * @returns {State}
 */
export function reduce(state, action, groups, lengths = { queries: 0, keys: 0 }) {
  switch (action.type) {
    case "tab": {
      const tab = wrapIndex(action.to ?? state.tab + (action.by ?? 0), groups.length);
      // another tab has other tokens, so a selection would be meaningless
      return clampHead({ ...state, tab, ...NO_SELECTION, zoom: UNZOOMED, scroll: 0 }, groups);
    }
    case "layer":
      return clampHead({ ...state, layer: action.to ?? state.layer + (action.by ?? 0) }, groups);
    case "head":
      return clampHead({ ...state, head: action.to ?? state.head + (action.by ?? 0) }, groups);
    case "selectHead":
      return clampHead({ ...state, layer: action.layer, head: action.head }, groups);
    case "mode":
      return { ...state, mode: action.to };
    case "rows":
      return { ...state, rows: action.to };
    case "mergeSubwords":
    case "collapseSpecial":
      return { ...state, [action.type]: !state[action.type], ...NO_SELECTION, zoom: UNZOOMED, scroll: 0 };
    case "autoScale":
      return { ...state, autoScale: !state.autoScale };
    case "threshold":
      return { ...state, threshold: Math.min(Math.max(action.to, 0), 1) };
    case "opacity":
      return { ...state, opacity: Math.min(Math.max(action.to, 0), 1) };
    case "hover":
      return state.locked ? state : { ...state, query: action.query, key: action.key };
    case "lock":
      return toggleLock(state, action);
    case "move":
      return moveSelection(state, action, lengths);
    case "clear":
      return { ...state, ...NO_SELECTION };
    case "zoom":
      return { ...state, zoom: action.to };
    case "scroll":
      return { ...state, scroll: action.to };
    default:
      throw new Error(`unknown action: ${/** @type {{type: string}} */ (action).type}`);
  }
}

/** Keep layer and head in range. @param {State} state @param {MapGroup[]} groups @returns {State} */
function clampHead(state, groups) {
  const { maps } = groups[state.tab];
  const layer = clampIndex(state.layer, maps.length);
  return { ...state, layer, head: clampIndex(state.head, maps[layer].heads.length) };
}

/** @param {State} state @param {Selection} selection @returns {State} */
function toggleLock(state, { query, key }) {
  const isSame = state.locked && state.query === query && state.key === key;
  return isSame ? { ...state, locked: false } : { ...state, query, key, locked: true };
}

/** @param {State} state @param {{query?: number, key?: number}} by @param {AxisLengths} lengths @returns {State} */
function moveSelection(state, { query = 0, key = 0 }, lengths) {
  /** @param {number|null} index @param {number} by @param {number} count */
  const moved = (index, by, count) => (by === 0 ? index : clampIndex(index === null ? 0 : index + by, count));
  return {
    ...state,
    query: moved(state.query, query, lengths.queries),
    key: moved(state.key, key, lengths.keys),
    locked: true,
  };
}

/** @param {number} index @param {number} count */
function clampIndex(index, count) {
  return Math.min(Math.max(index, 0), count - 1);
}

/** @param {number} index @param {number} count */
function wrapIndex(index, count) {
  return ((index % count) + count) % count;
}
