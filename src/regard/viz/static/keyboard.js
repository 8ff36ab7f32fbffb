/** What a key on the keyboard does. */

/** @type {Object<string, {query?: number, key?: number, layer?: number, head?: number}>} */
const ARROWS = {
  ArrowUp: { query: -1, layer: -1 },
  ArrowDown: { query: 1, layer: 1 },
  ArrowLeft: { key: -1, head: -1 },
  ArrowRight: { key: 1, head: 1 },
};

/**
 * Give the action of a key, or null. Arrows move from token to token; with Shift, or in the
 * overview, from layer to layer and from head to head.
 * @param {{key: string, shiftKey?: boolean, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} event
 * @returns {import("./state.js").Wish|null}
 */
export function actionOf({ key, shiftKey = false, ctrlKey = false, metaKey = false, altKey = false }, inOverview = false) {
  if (ctrlKey || metaKey || altKey) return null;
  const arrow = ARROWS[key];
  if (arrow && (shiftKey || inOverview)) {
    return arrow.layer ? { type: "layer", by: arrow.layer } : { type: "head", by: arrow.head };
  }
  if (arrow) return { type: "move", query: arrow.query ?? 0, key: arrow.key ?? 0 };
  if (/^[1-9]$/.test(key)) return { type: "tab", to: Number(key) - 1 };
  switch (key) {
    case "Escape":
      return { type: "clear" };
    case "Enter":
      return { type: "relock" };
    case "m":
    case "M":
      return { type: "mode", to: "matrix" };
    case "l":
    case "L":
      return { type: "mode", to: "lines" };
    case "+":
    case "=":
      return { type: "nearer", by: 1.4 };
    case "-":
      return { type: "nearer", by: 1 / 1.4 };
    case "0":
      return { type: "nearer", by: 0 };
    default:
      return null;
  }
}
