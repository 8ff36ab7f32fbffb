/** Keyboard shortcuts of the viewer. */

/** @type {Object<string, {query?: number, key?: number, layer?: number, head?: number}>} */
const ARROWS = {
  ArrowUp: { query: -1, layer: -1 },
  ArrowDown: { query: 1, layer: 1 },
  ArrowLeft: { key: -1, head: -1 },
  ArrowRight: { key: 1, head: 1 },
};
const ZOOM_FACTOR = 1.4;

/**
 * Return the command of a key press, or null. Arrow keys move from token to token; with Shift, or in the overview,
 * from layer to layer and from head to head. Combinations with Ctrl, Meta or Alt belong to the browser.
 * @param {{key: string, shiftKey?: boolean, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} event
 * @returns {import("./state.js").Command|null}
 */
export function commandForKey({ key, shiftKey = false, ctrlKey = false, metaKey = false, altKey = false }, inOverview = false) {
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
      return { type: "toggleLock" };
    case "m":
    case "M":
      return { type: "mode", to: "matrix" };
    case "l":
    case "L":
      return { type: "mode", to: "lines" };
    case "i":
    case "I":
      return { type: "mode", to: "image" };
    case "+":
    case "=":
      return { type: "zoomBy", factor: ZOOM_FACTOR };
    case "-":
      return { type: "zoomBy", factor: 1 / ZOOM_FACTOR };
    case "0":
      return { type: "resetZoom" };
    default:
      return null;
  }
}
