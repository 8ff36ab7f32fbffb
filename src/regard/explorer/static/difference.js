/** What differs between two heads: the second's weights minus the first's, cell by cell. */

/**
 * @import { Group } from "../viz/tokenGroups.js"
 * @import { Scale } from "../viz/scale.js"
 * @import { Area, Cells } from "../viz/headView.js"
 * @typedef {(query: number, key: number) => number} At
 */

/** Say why two heads cannot be compared cell by cell: "size", "reduced", or null if they can. @param {Cells} one @param {Cells} other */
export function obstacle(one, other) {
  if (one.queries.length !== other.queries.length || one.keys.length !== other.keys.length) return "size";
  return one.whole && other.whole ? null : "reduced";
}

/** Tell two heads' difference as a view; words that differ are both named. @param {Cells} one @param {Cells} other */
export function difference(one, other) {
  /** @type {At} */
  const at = (query, key) => (other.at(query, key) ?? 0) - (one.at(query, key) ?? 0);
  /** @param {Group[]} mine @param {Group[]} theirs */
  const named = (mine, theirs) => mine.map((group, n) => ({ ...group, text: both(group.text, theirs[n].text) }));
  const all = one.queries.flatMap((_, query) => one.keys.map((_, key) => at(query, key)));
  return {
    queries: named(one.queries, other.queries),
    keys: named(one.keys, other.keys),
    gold: /** @type {Set<string>} */ (new Set()),
    whole: true,
    step: Math.max(one.step, other.step),
    maximum: all.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
    /** The mean share of weight that a query has moved elsewhere. */
    moved: all.reduce((sum, value) => sum + Math.abs(value), 0) / 2 / Math.max(1, one.queries.length),
    at,
    raster: (/** @type {Area} */ area, /** @type {number} */ height, /** @type {number} */ width) => pooled(area, height, width, at),
  };
}

/** @param {string} mine @param {string} theirs */
function both(mine, theirs) {
  return mine === theirs ? mine : `${mine}│${theirs}`;
}

/**
 * Make an area coarser: each pixel is the cell it covers that is farthest from zero.
 * @param {Area} area
 * @param {number} height
 * @param {number} width
 * @param {At} at
 */
function pooled({ top, left, bottom, right }, height, width, at) {
  const pixels = new Float32Array(height * width);
  for (let query = top; query < bottom; query++) {
    const row = Math.floor(((query - top) * height) / (bottom - top)) * width;
    for (let key = left; key < right; key++) {
      const pixel = row + Math.floor(((key - left) * width) / (right - left));
      const value = at(query, key);
      if (Math.abs(value) > Math.abs(pixels[pixel])) pixels[pixel] = value;
    }
  }
  return pixels;
}

/** Orange for less, blue for more, and what is neither, on light and on dark paper. @type {Object<string, number[][]>} */
const COLOURS = {
  light: [[178, 80, 18], [245, 245, 243], [28, 92, 176]],
  dark: [[240, 145, 85], [34, 39, 48], [108, 168, 255]],
};

/** Give the colour of a share from -1 to 1. @param {number} share @returns {number[]} */
export function diverging(share, theme = "light") {
  const [less, even, more] = COLOURS[theme];
  const far = Math.min(1, Math.abs(share)) ** 0.8;
  return even.map((start, n) => Math.round(start + ((share < 0 ? less : more)[n] - start) * far));
}

/** Differences from −1 to 1, for a map. @type {(theme: string) => Scale} */
export const differences = (theme) => ({
  least: -1,
  colour: (share) => diverging(share, theme),
  pixels(values, top) {
    const bytes = new Uint8ClampedArray(4 * values.length);
    values.forEach((value, n) => bytes.set([...diverging(value / top, theme), 255], 4 * n));
    return bytes;
  },
  number: (value) => (Math.abs(value) < 0.005 ? "0" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2).replace(/^0/, "")}`),
});
