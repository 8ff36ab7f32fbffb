/** One head of which only the strongest weights of each row and coarse tiles were kept. */
import { pixelOf } from "./denseHead.js";

/**
 * @import { Look, Numbers, Reduced } from "./trace.js"
 * @import { Area, Head, Link } from "./headView.js"
 * @typedef {(query: number) => Link[]} LinksOf
 */

/**
 * Give one reduced head; its pieces are shown one by one.
 * @param {Look & {reduced: Reduced}} look
 * @param {number} place
 * @returns {Head}
 */
export function reducedHead(look, place) {
  const { top_keys: top, top_weights: weights, remainder: left, tiles } = look.reduced;
  const [, queries, keys] = look.sizes;
  const ranks = top.shape[2];
  const start = place * queries * ranks;
  /** @param {number} query @param {number} rank */
  const weightAt = (query, rank) => weights.values[start + query * ranks + rank] * weights.scale;
  /** @param {number} query @param {number} rank */
  const keyAt = (query, rank) => top.values[start + query * ranks + rank];
  /** @type {LinksOf} */
  const links = (query) => {
    const found = [];
    for (let rank = 0; rank < ranks; rank++) {
      const weight = weightAt(query, rank);
      if (weight > 0) found.push({ place: keyAt(query, rank), weight });
    }
    return found;
  };
  return {
    whole: false,
    step: weights.scale,
    maximum: maximum(queries, (query) => (ranks ? weightAt(query, 0) : 0)),
    /** The weight, or null where only a coarse mean is known. */
    at: (query, key) => links(query).find((link) => link.place === key)?.weight ?? null,
    row: links,
    column: (key) => columnOf(queries, key, links),
    leftOut: (query) => left.values[place * queries + query] * left.scale,
    raster(area, height, width) {
      const coarse = tileAt(tiles, place, queries, keys, (query) => weightAt(query, ranks - 1));
      const pixels = background(area, height, width, coarse);
      for (let query = area.top; query < area.bottom; query++) {
        const row = pixelOf(query - area.top, area.bottom - area.top, height) * width;
        for (const link of links(query)) {
          if (link.place < area.left || link.place >= area.right) continue;
          const pixel = row + pixelOf(link.place - area.left, area.right - area.left, width);
          if (link.weight > pixels[pixel]) pixels[pixel] = link.weight;
        }
      }
      return pixels;
    },
  };
}

/** @param {number} count @param {(place: number) => number} at */
function maximum(count, at) {
  let most = 0;
  for (let place = 0; place < count; place++) most = Math.max(most, at(place));
  return most;
}

/** @param {number} queries @param {number} key @param {LinksOf} links */
function columnOf(queries, key, links) {
  const found = [];
  for (let query = 0; query < queries; query++) {
    const link = links(query).find((one) => one.place === key);
    if (link) found.push({ place: query, weight: link.weight });
  }
  return found.sort((a, b) => b.weight - a.weight || a.place - b.place);
}

/**
 * Look tiles up; what is not among a row's strongest is no more than the weakest of them.
 * @param {Numbers} tiles
 * @param {number} place
 * @param {number} queries
 * @param {number} keys
 * @param {(query: number) => number} weakest
 * @returns {(query: number, key: number) => number}
 */
function tileAt(tiles, place, queries, keys, weakest) {
  const [, rows, columns] = tiles.shape;
  const tileRow = tileOf(queries, rows);
  const tileColumn = tileOf(keys, columns);
  const start = place * rows * columns;
  return (query, key) => {
    const mean = tiles.values[start + tileRow[query] * columns + tileColumn[key]] * tiles.scale;
    return Math.min(mean, weakest(query));
  };
}

/**
 * Tile t of T holds positions floor(t N / T) up to, not including, floor((t + 1) N / T).
 * @param {number} count
 * @param {number} tiles
 */
export function tileOf(count, tiles) {
  const found = new Int32Array(count);
  for (let tile = 0; tile < tiles; tile++) {
    const end = Math.floor(((tile + 1) * count) / tiles);
    found.fill(tile, Math.floor((tile * count) / tiles), end);
  }
  return found;
}

/** @param {Area} area @param {number} height @param {number} width @param {(query: number, key: number) => number} coarse */
function background({ top, left, bottom, right }, height, width, coarse) {
  const pixels = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    const query = top + Math.floor(((row + 0.5) * (bottom - top)) / height);
    for (let column = 0; column < width; column++) {
      const key = left + Math.floor(((column + 0.5) * (right - left)) / width);
      pixels[row * width + column] = coarse(query, key);
    }
  }
  return pixels;
}
