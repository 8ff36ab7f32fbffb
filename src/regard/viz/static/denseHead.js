/** One head of a map that holds all its weights. */
import { isUngrouped } from "./tokenGroups.js";

/**
 * @import { Head, Link, Region } from "./headView.js"
 * @import { TokenGroup } from "./tokenGroups.js"
 * @import { AttentionMap, QuantizedArray } from "./trace.js"
 * @typedef {AttentionMap & {weights: QuantizedArray}} DenseMap
 */

/**
 * Create a head whose weights are summed over the keys of a group and averaged over its queries: rows still sum to 1.
 * @param {DenseMap} map
 * @param {number} head
 * @param {TokenGroup[]} queries
 * @param {TokenGroup[]} keys
 * @returns {Head}
 */
export function createDenseHead(map, head, queries, keys) {
  const weights = groupWeights(map, head, queries, keys);
  const [rows, columns] = [queries.length, keys.length];
  const rowCache = /** @type {Map<number, Link[]>} */ (new Map());
  return {
    isDense: true,
    step: map.weights.scale,
    maximum: weights.reduce((maximum, weight) => Math.max(maximum, weight), 0),
    at: (query, key) => weights[query * columns + key],
    /** All links of a query, strongest first. */
    row(query) {
      const links = rowCache.get(query) ?? sortedLinks(columns, (key) => weights[query * columns + key]);
      rowCache.set(query, links);
      return links;
    },
    /** All links to a key, strongest first. */
    column: (key) => sortedLinks(rows, (query) => weights[query * columns + key]),
    remainder: () => 0,
    rasterize: (region, height, width) => maxPool(region, height, width, (q, k) => weights[q * columns + k]),
  };
}

/** @param {number} count @param {(index: number) => number} weightAt @returns {Link[]} */
function sortedLinks(count, weightAt) {
  const links = [];
  for (let index = 0; index < count; index++) {
    const weight = weightAt(index);
    if (weight > 0) links.push({ index, weight });
  }
  return links.sort((a, b) => b.weight - a.weight || a.index - b.index);
}

/** @param {DenseMap} map @param {number} head @param {TokenGroup[]} queries @param {TokenGroup[]} keys */
function groupWeights(map, head, queries, keys) {
  const { values, scale } = map.weights;
  const [, rows, columns] = map.shape;
  const start = head * rows * columns;
  if (isUngrouped(queries) && isUngrouped(keys)) {
    return Float32Array.from(values.subarray(start, start + rows * columns), (value) => value * scale);
  }
  const grouped = new Float32Array(queries.length * keys.length);
  queries.forEach((query, i) => {
    for (const row of query.positions) {
      keys.forEach((key, j) => {
        let sum = 0;
        for (const column of key.positions) sum += values[start + row * columns + column];
        grouped[i * keys.length + j] += (sum * scale) / query.positions.length;
      });
    }
  });
  return grouped;
}

/**
 * Downsample a region: each pixel is the maximum of the cells it covers.
 * @param {Region} region
 * @param {number} height
 * @param {number} width
 * @param {(query: number, key: number) => number} at
 */
function maxPool({ top, left, bottom, right }, height, width, at) {
  const pixels = new Float32Array(height * width);
  const pixelColumns = new Int32Array(right - left);
  for (let key = left; key < right; key++) pixelColumns[key - left] = pixelIndex(key - left, right - left, width);
  for (let query = top; query < bottom; query++) {
    const start = pixelIndex(query - top, bottom - top, height) * width;
    for (let key = left; key < right; key++) {
      const pixel = start + pixelColumns[key - left];
      const weight = at(query, key);
      if (weight > pixels[pixel]) pixels[pixel] = weight;
    }
  }
  return pixels;
}

/** Return the pixel that a cell falls into. @param {number} cell @param {number} cells @param {number} pixels */
export function pixelIndex(cell, cells, pixels) {
  return Math.floor((cell * pixels) / cells);
}
