/** Difference of two heads, B − A, cell by cell, and its diverging colour scale. */

/**
 * @import { ColourScale } from "../viz/colourScale.js"
 * @import { MatrixData, Region } from "../viz/headView.js"
 * @import { TokenGroup } from "../viz/tokenGroups.js"
 * @typedef {(query: number, key: number) => number} ValueAt
 */

/**
 * Return why two heads cannot be subtracted, or null if they can.
 * @param {MatrixData} a
 * @param {MatrixData} b
 * @returns {"size"|"summary"|null}
 */
export function incompatibility(a, b) {
  if (a.queries.length !== b.queries.length || a.keys.length !== b.keys.length) return "size";
  return a.isDense && b.isDense ? null : "summary";
}

/**
 * Return B − A as matrix data; where the words of an axis differ, both are shown.
 * @param {MatrixData} a
 * @param {MatrixData} b
 */
export function subtractHeads(a, b) {
  /** @type {ValueAt} */
  const at = (query, key) => (b.at(query, key) ?? 0) - (a.at(query, key) ?? 0);
  /** @param {TokenGroup[]} groups @param {TokenGroup[]} others */
  const mergeLabels = (groups, others) => groups.map((group, n) => ({ ...group, text: mergeLabel(group.text, others[n].text) }));
  const values = a.queries.flatMap((_, query) => a.keys.map((_, key) => at(query, key)));
  return {
    queries: mergeLabels(a.queries, b.queries),
    keys: mergeLabels(a.keys, b.keys),
    gold: /** @type {Set<string>} */ (new Set()),
    isDense: true,
    step: Math.max(a.step, b.step),
    maximum: values.reduce((maximum, value) => Math.max(maximum, Math.abs(value)), 0),
    /** Total variation distance, ½ Σ|b − a|, averaged over the queries. */
    totalVariation: values.reduce((sum, value) => sum + Math.abs(value), 0) / 2 / Math.max(1, a.queries.length),
    at,
    rasterize: (/** @type {Region} */ region, /** @type {number} */ height, /** @type {number} */ width) =>
      extremePool(region, height, width, at),
  };
}

/** @param {string} text @param {string} other */
function mergeLabel(text, other) {
  return text === other ? text : `${text}│${other}`;
}

/**
 * Downsample a region: each pixel is the value farthest from zero among the cells it covers.
 * @param {Region} region
 * @param {number} height
 * @param {number} width
 * @param {ValueAt} at
 */
function extremePool({ top, left, bottom, right }, height, width, at) {
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

/** Orange below zero, blue above, by theme. @type {Object<string, number[][]>} */
const DIVERGING_COLOURS = {
  light: [[178, 80, 18], [245, 245, 243], [28, 92, 176]],
  dark: [[240, 145, 85], [34, 39, 48], [108, 168, 255]],
};

/** Return the colour of a fraction from -1 to 1. @param {number} fraction @returns {number[]} */
export function divergingColour(fraction, theme = "light") {
  const [negative, zero, positive] = DIVERGING_COLOURS[theme];
  const distance = Math.min(1, Math.abs(fraction)) ** 0.8;
  return zero.map((start, n) => Math.round(start + ((fraction < 0 ? negative : positive)[n] - start) * distance));
}

/** Create the colour scale of differences, from −1 to 1. @type {(theme: string) => ColourScale} */
export const differenceScale = (theme) => ({
  minimum: -1,
  colourAt: (fraction) => divergingColour(fraction, theme),
  toPixels(values, maximum) {
    const bytes = new Uint8ClampedArray(4 * values.length);
    values.forEach((value, n) => bytes.set([...divergingColour(value / maximum, theme), 255], 4 * n));
    return bytes;
  },
  format: (value) => (Math.abs(value) < 0.005 ? "0" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2).replace(/^0/, "")}`),
});
