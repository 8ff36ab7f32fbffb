/** One head of a summarised map: only the top weights of each row are known exactly, the rest as coarse tiles. */
import { pixelIndex } from "./denseHead.js";

/**
 * @import { Head, Link, Region } from "./headView.js"
 * @import { AttentionMap, AttentionSummary, QuantizedArray } from "./trace.js"
 * @typedef {(query: number) => Link[]} LinksOf
 */

/**
 * Create a head from a summary. Its tokens cannot be grouped.
 * @param {AttentionMap & {summary: AttentionSummary}} map
 * @param {number} head
 * @returns {Head}
 */
export function createSparseHead(map, head) {
  const { top_keys: topKeys, top_weights: topWeights, remainder, tiles } = map.summary;
  const [, queries, keys] = map.shape;
  const ranks = topKeys.shape[2];
  const start = head * queries * ranks;
  /** @param {number} query @param {number} rank */
  const weightAt = (query, rank) => topWeights.values[start + query * ranks + rank] * topWeights.scale;
  /** @param {number} query @param {number} rank */
  const keyAt = (query, rank) => topKeys.values[start + query * ranks + rank];
  /** @type {LinksOf} */
  const row = (query) => {
    const links = [];
    for (let rank = 0; rank < ranks; rank++) {
      const weight = weightAt(query, rank);
      if (weight > 0) links.push({ index: keyAt(query, rank), weight });
    }
    return links;
  };
  return {
    isDense: false,
    step: topWeights.scale,
    maximum: maximumOf(queries, (query) => (ranks ? weightAt(query, 0) : 0)),
    /** The weight, or null where only the mean of a tile is known. */
    at: (query, key) => row(query).find((link) => link.index === key)?.weight ?? null,
    row,
    column: (key) => columnLinks(queries, key, row),
    remainder: (query) => remainder.values[head * queries + query] * remainder.scale,
    rasterize(region, height, width) {
      const tileAt = tileLookup(tiles, head, queries, keys, (query) => weightAt(query, ranks - 1));
      const pixels = sampleTiles(region, height, width, tileAt);
      for (let query = region.top; query < region.bottom; query++) {
        const rowStart = pixelIndex(query - region.top, region.bottom - region.top, height) * width;
        for (const link of row(query)) {
          if (link.index < region.left || link.index >= region.right) continue;
          const pixel = rowStart + pixelIndex(link.index - region.left, region.right - region.left, width);
          if (link.weight > pixels[pixel]) pixels[pixel] = link.weight;
        }
      }
      return pixels;
    },
  };
}

/** @param {number} count @param {(index: number) => number} valueAt */
function maximumOf(count, valueAt) {
  let maximum = 0;
  for (let index = 0; index < count; index++) maximum = Math.max(maximum, valueAt(index));
  return maximum;
}

/** @param {number} queries @param {number} key @param {LinksOf} row */
function columnLinks(queries, key, row) {
  const links = [];
  for (let query = 0; query < queries; query++) {
    const link = row(query).find(({ index }) => index === key);
    if (link) links.push({ index: query, weight: link.weight });
  }
  return links.sort((a, b) => b.weight - a.weight || a.index - b.index);
}

/**
 * Return a function that looks up the tile of a cell. A weight outside a row's top is at most the smallest of them.
 * @param {QuantizedArray} tiles
 * @param {number} head
 * @param {number} queries
 * @param {number} keys
 * @param {(query: number) => number} smallestTopWeight
 * @returns {(query: number, key: number) => number}
 */
function tileLookup(tiles, head, queries, keys, smallestTopWeight) {
  const [, rows, columns] = tiles.shape;
  const tileRow = tileIndices(queries, rows);
  const tileColumn = tileIndices(keys, columns);
  const start = head * rows * columns;
  return (query, key) => {
    const mean = tiles.values[start + tileRow[query] * columns + tileColumn[key]] * tiles.scale;
    return Math.min(mean, smallestTopWeight(query));
  };
}

/**
 * Return the tile of each position. Tile t of T covers positions floor(t N / T) to floor((t + 1) N / T) - 1.
 * @param {number} count
 * @param {number} tiles
 */
export function tileIndices(count, tiles) {
  const indices = new Int32Array(count);
  for (let tile = 0; tile < tiles; tile++) {
    const end = Math.floor(((tile + 1) * count) / tiles);
    indices.fill(tile, Math.floor((tile * count) / tiles), end);
  }
  return indices;
}

/**
 * @param {Region} region
 * @param {number} height
 * @param {number} width
 * @param {(query: number, key: number) => number} tileAt
 */
function sampleTiles({ top, left, bottom, right }, height, width, tileAt) {
  const pixels = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    const query = top + Math.floor(((row + 0.5) * (bottom - top)) / height);
    for (let column = 0; column < width; column++) {
      const key = left + Math.floor(((column + 0.5) * (right - left)) / width);
      pixels[row * width + column] = tileAt(query, key);
    }
  }
  return pixels;
}
