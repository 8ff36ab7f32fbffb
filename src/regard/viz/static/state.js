/** What is chosen, pointed at and locked; every change is a new state. */

/**
 * @import { Stack } from "./mapGroups.js"
 * @typedef {{tab: number, layer: number, head: number, mode: "matrix"|"lines", words: boolean,
 *   folded: boolean, stretched: boolean, threshold: number, query: number|null, key: number|null,
 *   locked: boolean, zoom: Zoom, scroll: number}} State
 * `tab`, `layer` and `head` are places, not names.
 * @typedef {{scale: number, x: number, y: number}} Zoom
 * @typedef {{query: number|null, key: number|null}} Pointer
 * @typedef {{queries: number, keys: number}} Counts
 * @typedef {{type: "tab"|"layer"|"head", to?: number, by?: number}|{type: "pick", layer: number, head: number}
 *   |{type: "mode", to: State["mode"]}|{type: "words"|"folded"|"stretched"|"clear"}|{type: "threshold"|"scroll", to: number}
 *   |({type: "point"|"lock"} & Pointer)|{type: "move", query?: number, key?: number}|{type: "zoom", to: Zoom}} Action
 * @typedef {Action|{type: "relock"}|{type: "nearer", by: number, at?: {x: number, y: number}}} Wish
 * An action, or what only the screen can turn into one.
 */

/** @type {Readonly<Zoom>} */
export const WHOLE = Object.freeze({ scale: 1, x: 0, y: 0 });
const NOTHING = { query: null, key: null, locked: false };

/**
 * Where a page begins, and what a link to it tells: `kind` and `head` are names here, `layer` a place.
 * @typedef {{kind?: string, layer?: number, head?: number|null, mode?: string, words?: boolean, folded?: boolean,
 *   stretched?: boolean, threshold?: number, query?: number|null, key?: number|null}} Start
 */

/**
 * Begin with cross-attention if there is any, or where the page was told to.
 * @param {Stack[]} stacks
 * @param {Start} [start]
 * @returns {State}
 */
export function initial(stacks, start = {}) {
  const named = stacks.findIndex((stack) => stack.name === (start.kind ?? "cross"));
  const tab = Math.max(0, named);
  const layer = within(start.layer ?? 0, stacks[tab].looks.length);
  const head = Math.max(0, stacks[tab].looks[layer].heads.indexOf(start.head ?? -1));
  const [query, key] = [start.query ?? null, start.key ?? null];
  return {
    tab,
    layer,
    head,
    mode: start.mode === "lines" ? "lines" : "matrix",
    words: Boolean(start.words),
    folded: Boolean(start.folded),
    stretched: Boolean(start.stretched),
    threshold: Math.min(Math.max(start.threshold ?? 0.02, 0), 1),
    query,
    key,
    locked: query !== null || key !== null,
    zoom: WHOLE,
    scroll: 0,
  };
}

/** Tell a state so that `initial` finds it again. @param {State} state @param {Stack[]} stacks @returns {Start} */
export function told(state, stacks) {
  const { tab, layer, head, mode, words, folded, stretched, threshold, locked } = state;
  const { name, looks } = stacks[tab];
  const start = { kind: name, layer, head: looks[layer].heads[head], mode, words, folded, stretched, threshold };
  return locked ? { ...start, query: state.query, key: state.key } : start;
}

/** Keep what is pointed at within what is shown. @param {State} state @param {Counts} shown @returns {State} */
export function kept(state, shown) {
  /** @param {number|null} place @param {number} count */
  const inside = (place, count) => (place === null || place < count ? place : null);
  const [query, key] = [inside(state.query, shown.queries), inside(state.key, shown.keys)];
  return query === null && key === null ? { ...state, ...NOTHING } : { ...state, query, key };
}

/**
 * Take one action. `shown` counts the queries and keys on the screen.
 * @param {State} state
 * @param {Action} action
 * @param {Stack[]} stacks
 * @param {Counts} shown
 * @returns {State}
 */
export function step(state, action, stacks, shown = { queries: 0, keys: 0 }) {
  switch (action.type) {
    case "tab": {
      const tab = turn(action.to ?? state.tab + (action.by ?? 0), stacks.length);
      // other tokens: nothing is pointed at any more
      return chosen({ ...state, tab, ...NOTHING, zoom: WHOLE, scroll: 0 }, stacks);
    }
    case "layer":
      return chosen({ ...state, layer: action.to ?? state.layer + (action.by ?? 0) }, stacks);
    case "head":
      return chosen({ ...state, head: action.to ?? state.head + (action.by ?? 0) }, stacks);
    case "pick":
      return chosen({ ...state, layer: action.layer, head: action.head }, stacks);
    case "mode":
      return { ...state, mode: action.to };
    case "words":
    case "folded":
      return { ...state, [action.type]: !state[action.type], ...NOTHING, zoom: WHOLE, scroll: 0 };
    case "stretched":
      return { ...state, stretched: !state.stretched };
    case "threshold":
      return { ...state, threshold: Math.min(Math.max(action.to, 0), 1) };
    case "point":
      return state.locked ? state : { ...state, query: action.query, key: action.key };
    case "lock":
      return lock(state, action);
    case "move":
      return moved(state, action, shown);
    case "clear":
      return { ...state, ...NOTHING };
    case "zoom":
      return { ...state, zoom: action.to };
    case "scroll":
      return { ...state, scroll: action.to };
    default:
      throw new Error(`no action is called ${/** @type {{type: string}} */ (action).type}`);
  }
}

/** Keep the layer and the head within what there is. @param {State} state @param {Stack[]} stacks @returns {State} */
function chosen(state, stacks) {
  const { looks } = stacks[state.tab];
  const layer = within(state.layer, looks.length);
  return { ...state, layer, head: within(state.head, looks[layer].heads.length) };
}

/** @param {State} state @param {Pointer} pointer @returns {State} */
function lock(state, { query, key }) {
  const same = state.locked && state.query === query && state.key === key;
  return same ? { ...state, locked: false } : { ...state, query, key, locked: true };
}

/** @param {State} state @param {{query?: number, key?: number}} by @param {Counts} shown @returns {State} */
function moved(state, { query = 0, key = 0 }, shown) {
  /** @param {number|null} place @param {number} by @param {number} count */
  const to = (place, by, count) => (by === 0 ? place : within(place === null ? 0 : place + by, count));
  return {
    ...state,
    query: to(state.query, query, shown.queries),
    key: to(state.key, key, shown.keys),
    locked: true,
  };
}

/** @param {number} place @param {number} count */
function within(place, count) {
  return Math.min(Math.max(place, 0), count - 1);
}

/** @param {number} place @param {number} count */
function turn(place, count) {
  return ((place % count) + count) % count;
}
