/** URL state: the page and its parameters in the fragment of the URL, so that a link restores what is shown. */

/**
 * @typedef {Object<string, string>} Params
 * @import { ViewState } from "../viz/state.js"
 */

/**
 * Parse a fragment such as "#translate?run=demo&text=cat".
 * @param {string} hash
 * @returns {{page: string, params: Params}}
 */
export function parseHash(hash) {
  const fragment = hash.replace(/^#\/?/, "");
  const separator = fragment.indexOf("?");
  const [page, query] = separator < 0 ? [fragment, ""] : [fragment.slice(0, separator), fragment.slice(separator + 1)];
  return { page, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Format a fragment; empty parameters are left out. @param {string} page @param {Object<string, unknown>} params */
export function formatHash(page, params) {
  const entries = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return query ? `#${page}?${query}` : `#${page}`;
}

/** Return the parameters of a viewer's state; defaults are left out. @param {ViewState} viewState */
export function viewStateToParams(viewState) {
  const { kind, layer, head, mode = "matrix", rows, mergeSubwords, collapseSpecial, autoScale, threshold, opacity, query, key } = viewState;
  const selected = [query ?? "", key ?? ""].join();
  return {
    kind: kind ?? "",
    layer: layer ?? "",
    head: head ?? "",
    view: mode === "matrix" ? "" : mode,
    rows: rows === "input" ? "input" : "",
    merge: mergeSubwords ? 1 : "",
    collapse: collapseSpecial ? 1 : "",
    autoscale: autoScale ? 1 : "",
    threshold: threshold ?? "",
    opacity: opacity ?? "",
    selected: selected === "," ? "" : selected,
  };
}

/** Parse a viewer's state; invalid values become defaults. @param {Params} params @returns {ViewState} */
export function paramsToViewState(params) {
  const [query, key] = (params.selected ?? "").split(",").map((index) => parseIndex(index));
  return {
    kind: params.kind,
    layer: parseIndex(params.layer) ?? undefined,
    head: parseIndex(params.head) ?? undefined,
    mode: params.view,
    rows: params.rows,
    mergeSubwords: params.merge === "1",
    collapseSpecial: params.collapse === "1",
    autoScale: params.autoscale === "1",
    threshold: parseNumber(params.threshold, undefined),
    opacity: parseNumber(params.opacity, undefined),
    query: query ?? null,
    key: key ?? null,
  };
}

/**
 * Return `name` if it is an own key of the table (and not, say, "constructor"), else the fallback.
 * @param {Object<string, unknown>} table
 * @param {string|undefined} name
 * @param {string} fallback
 */
export function ownKeyOr(table, name, fallback) {
  return name !== undefined && Object.hasOwn(table, name) ? name : fallback;
}

/** Parse a non-negative integer, or return null. @param {string|undefined} text */
export function parseIndex(text) {
  return /^\d{1,6}$/.test(text ?? "") ? Number(text) : null;
}

/**
 * Parse a number and clamp it to a range, or return the fallback.
 * @template {number|undefined} T
 * @param {string|undefined} text
 * @param {T} fallback
 * @param {number[]} [range]
 */
export function parseNumber(text, fallback, [min, max] = [-1e6, 1e6]) {
  const value = text === undefined || text === "" ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(Math.max(value, min), max) : fallback;
}
