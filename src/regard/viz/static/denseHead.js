/** One head whose weights are whole. */
import { isPlain } from "./tokenGroups.js";

/**
 * @import { Group } from "./tokenGroups.js"
 * @import { Look, Numbers } from "./trace.js"
 * @import { Area, Head, Link } from "./headView.js"
 */

/**
 * Give one head's weights between groups: summed over keys, their mean over queries.
 * @param {Look & {weights: Numbers}} look
 * @param {number} place
 * @param {Group[]} queries
 * @param {Group[]} keys
 * @returns {Head}
 */
export function wholeHead(look, place, queries, keys) {
  const weights = grouped(look, place, queries, keys);
  const [down, across] = [queries.length, keys.length];
  const rows = /** @type {Map<number, Link[]>} */ (new Map());
  return {
    whole: true,
    step: look.weights.scale,
    maximum: weights.reduce((most, weight) => Math.max(most, weight), 0),
    at: (query, key) => weights[query * across + key],
    /** All links of a query, strongest first. */
    row(query) {
      const links = rows.get(query) ?? strongest(across, (key) => weights[query * across + key]);
      rows.set(query, links);
      return links;
    },
    /** All links to a key, strongest first. */
    column: (key) => strongest(down, (query) => weights[query * across + key]),
    leftOut: () => 0,
    raster: (area, height, width) => pooled(area, height, width, (q, k) => weights[q * across + k]),
  };
}

/** @param {number} count @param {(place: number) => number} weightOf @returns {Link[]} */
function strongest(count, weightOf) {
  const links = [];
  for (let place = 0; place < count; place++) {
    const weight = weightOf(place);
    if (weight > 0) links.push({ place, weight });
  }
  return links.sort((a, b) => b.weight - a.weight || a.place - b.place);
}

/** @param {Look & {weights: Numbers}} look @param {number} place @param {Group[]} queries @param {Group[]} keys */
function grouped(look, place, queries, keys) {
  const { values, scale } = look.weights;
  const [, rows, columns] = look.sizes;
  const start = place * rows * columns;
  if (isPlain(queries) && isPlain(keys)) {
    return Float32Array.from(values.subarray(start, start + rows * columns), (value) => value * scale);
  }
  const out = new Float32Array(queries.length * keys.length);
  queries.forEach((query, i) => {
    for (const row of query.places) {
      keys.forEach((key, j) => {
        let sum = 0;
        for (const column of key.places) sum += values[start + row * columns + column];
        out[i * keys.length + j] += (sum * scale) / query.places.length;
      });
    }
  });
  return out;
}

/**
 * Make an area coarser: each pixel is the largest of the cells it covers.
 * @param {Area} area
 * @param {number} height
 * @param {number} width
 * @param {(query: number, key: number) => number} at
 */
function pooled({ top, left, bottom, right }, height, width, at) {
  const pixels = new Float32Array(height * width);
  const column = new Int32Array(right - left);
  for (let key = left; key < right; key++) column[key - left] = pixelOf(key - left, right - left, width);
  for (let query = top; query < bottom; query++) {
    const start = pixelOf(query - top, bottom - top, height) * width;
    for (let key = left; key < right; key++) {
      const pixel = start + column[key - left];
      const weight = at(query, key);
      if (weight > pixels[pixel]) pixels[pixel] = weight;
    }
  }
  return pixels;
}

/** Tell in which of some pixels one of many cells lies. @param {number} cell @param {number} cells @param {number} pixels */
export function pixelOf(cell, cells, pixels) {
  return Math.floor((cell * pixels) / cells);
}
