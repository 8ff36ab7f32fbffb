/** The address of a page: its name and what is chosen on it, so that a link opens it again. */

/**
 * @typedef {Object<string, string>} Values
 * @typedef {{page: string, values: Values}} Address
 * @import { Start } from "../viz/state.js"
 */

/** Read what stands after the # of an address. @param {string} hash @returns {Address} */
export function read(hash) {
  const [page, query = ""] = cut(hash.replace(/^#\/?/, ""), "?");
  return { page, values: Object.fromEntries(new URLSearchParams(query)) };
}

/** Write an address; values that are empty are left out. @param {{page: string, values: Object<string, unknown>}} address */
export function write({ page, values }) {
  const told = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(told.map(([name, value]) => [name, String(value)])).toString();
  return query ? `#${page}?${query}` : `#${page}`;
}

/** @param {string} text @param {string} sign */
function cut(text, sign) {
  const place = text.indexOf(sign);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

/** Tell in an address where a trace is looked at; what is usual is left out. @param {Start} start */
export function ofLook(start) {
  const { kind, layer, head, mode, words, folded, stretched, threshold, query, key } = start;
  const pointed = [query ?? "", key ?? ""].join();
  return {
    kind: kind ?? "",
    layer: layer ?? "",
    head: head ?? "",
    view: mode === "lines" ? "lines" : "",
    words: words ? 1 : "",
    fold: folded ? 1 : "",
    stretch: stretched ? 1 : "",
    hide: threshold === undefined || threshold === 0.02 ? "" : threshold,
    at: pointed === "," ? "" : pointed,
  };
}

/** Find again where a trace was looked at. @param {Values} values @returns {Start} */
export function toLook(values) {
  const [query, key] = (values.at ?? "").split(",").map((place) => whole(place));
  return {
    kind: values.kind,
    layer: whole(values.layer) ?? undefined,
    head: whole(values.head) ?? 0,
    mode: values.view,
    words: values.words === "1",
    folded: values.fold === "1",
    stretched: values.stretch === "1",
    threshold: number(values.hide, 0.02),
    query: query ?? null,
    key: key ?? null,
  };
}

/**
 * Give a name that a table itself has, and not what every object has, such as "constructor"; or another.
 * @param {Object<string, unknown>} table
 * @param {string|undefined} name
 * @param {string} otherwise
 */
export function oneOf(table, name, otherwise) {
  return name !== undefined && Object.hasOwn(table, name) ? name : otherwise;
}

/** Read a number of zero or more without decimals; null if it is none. @param {string|undefined} text */
export function whole(text) {
  return /^\d{1,6}$/.test(text ?? "") ? Number(text) : null;
}

/**
 * Read a number within bounds, or give another.
 * @param {string|undefined} text
 * @param {number} otherwise
 * @param {number[]} [bounds]
 */
export function number(text, otherwise, [least, most] = [-1e6, 1e6]) {
  const found = text === undefined || text === "" ? NaN : Number(text);
  return Number.isFinite(found) ? Math.min(Math.max(found, least), most) : otherwise;
}
