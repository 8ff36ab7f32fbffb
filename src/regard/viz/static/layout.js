/** Where a matrix stands: how large a cell is, which part is seen, and what is under a pixel. */

/**
 * @import { Pointer, Zoom } from "./state.js"
 * @import { Area, Cells } from "./headView.js"
 * @typedef {{width: number, height: number}} Size
 * @typedef {{queries: string, keys: string}} Names
 * @typedef {{mode: "matrix", left: number, top: number, cell: number, words: number, across: number, isUpright: boolean,
 *   isNarrow: boolean, foot: number, width: number, height: number, area: Size, seen: {across: number, down: number},
 *   zoom: Zoom}} Placed
 */

const LARGEST = 60; // pixels of a cell when all are shown
const NEAREST = 72; // and when zoomed in
const LONGEST = 130; // pixels of a word's label
const FOOT = { wide: 60, narrow: 76 }; // room for the scale and notes
const NARROW = 420; // pixels in which the notes need a line each

/**
 * Place the matrix: where it begins, how large a cell is, and which part is seen.
 * @param {Size} size
 * @param {Cells} view
 * @param {Zoom} zoom
 * @param {(text: string) => number} measure
 * @returns {Placed}
 */
export function layout(size, view, zoom, measure) {
  const widest = (/** @type {Cells["keys"]} */ groups) => Math.min(LONGEST, groups.reduce((most, { text }) => Math.max(most, measure(text)), 0));
  const words = Math.ceil(widest(view.queries)) + 28;
  const keyWidth = widest(view.keys);
  const [down, across] = [view.queries.length, view.keys.length];
  const upright = 24;
  const slanted = Math.ceil(keyWidth * 0.82) + 24;
  // a frame that is hidden or not yet laid out has no room at all
  /** @param {number} top @param {number} right */
  const room = (top, right) => ({
    width: Math.max(1, size.width - words - right),
    height: Math.max(1, size.height - top - (size.width < NARROW ? FOOT.narrow : FOOT.wide)),
  });
  const fits = (/** @type {Size} */ area) => Math.min(LARGEST, area.width / across, area.height / down);
  let [top, right] = [upright, 16];
  let area = room(top, right);
  // the room is that of the whole map, so that nothing jumps while zooming
  if (keyWidth + 8 > fits(area)) {
    [top, right] = [slanted, Math.ceil(keyWidth * 0.58) + 8];
    area = room(top, right);
  }
  const fit = Math.max(fits(area), 0.05);
  const cell = Math.max(fit, Math.min(fit * zoom.scale, Math.max(NEAREST, fit)));
  const seen = { across: Math.min(across, area.width / cell), down: Math.min(down, area.height / cell) };
  const left = centred(words, area.width, across, cell);
  return {
    mode: "matrix",
    left,
    top,
    cell,
    words,
    across,
    isUpright: keyWidth + 8 <= cell,
    isNarrow: size.width < NARROW,
    foot: size.width < 560 ? 20 : left, // a narrow window needs all its width for the notes
    width: seen.across * cell,
    height: seen.down * cell,
    area,
    seen,
    zoom: {
      scale: cell / fit,
      x: Math.min(Math.max(zoom.x, 0), across - seen.across),
      y: Math.min(Math.max(zoom.y, 0), down - seen.down),
    },
  };
}

/**
 * A map narrower than its area stands in the middle of it.
 * @param {number} words
 * @param {number} room
 * @param {number} across
 * @param {number} cell
 */
function centred(words, room, across, cell) {
  return words + Math.floor((room - Math.min(room, across * cell)) / 2);
}

/**
 * Zoom by a factor, while the cell under the pixel (x, y) stays where it is.
 * @param {Placed} placed
 * @param {number} factor
 * @param {number} x
 * @param {number} y
 * @returns {Zoom}
 */
export function zoomed(placed, factor, x, y) {
  const scale = Math.max(1, Math.min(placed.zoom.scale * factor, (NEAREST / placed.cell) * placed.zoom.scale));
  const cell = (placed.cell * scale) / placed.zoom.scale;
  const left = centred(placed.words, placed.area.width, placed.across, cell);
  const down = y - placed.top;
  return {
    scale,
    x: placed.zoom.x + (x - placed.left) / placed.cell - (x - left) / cell,
    y: placed.zoom.y + down / placed.cell - down / cell,
  };
}

/**
 * Move the seen part by pixels.
 * @param {Pick<Placed, "zoom"|"cell">} placed
 * @param {number} across
 * @param {number} down
 * @returns {Zoom}
 */
export function panned({ zoom, cell }, across, down) {
  return { ...zoom, x: zoom.x + across / cell, y: zoom.y + down / cell };
}

/**
 * Move the seen part as little as needed to show a query and a key.
 * @param {Placed} placed
 * @param {number|null} query
 * @param {number|null} key
 * @returns {Zoom}
 */
export function revealed({ zoom, seen }, query, key) {
  /** @param {number} first @param {number} count @param {number|null} place */
  const into = (first, count, place) =>
    place === null ? first : Math.min(Math.max(first, place + 1 - count), place);
  return { ...zoom, x: into(zoom.x, seen.across, key), y: into(zoom.y, seen.down, query) };
}

/**
 * Tell what is under a pixel: a cell, a word at the edge, or nothing.
 * @param {Placed} placed
 * @param {Cells} view
 * @param {number} x
 * @param {number} y
 * @returns {Pointer|null}
 */
export function hit(placed, view, x, y) {
  const { left, top, cell, width, height, zoom } = placed;
  const inColumns = x >= left && x < left + width;
  const inRows = y >= top && y < top + height;
  const query = inRows && x < left + width ? Math.floor(zoom.y + (y - top) / cell) : null;
  const key = inColumns && y < top + height ? Math.floor(zoom.x + (x - left) / cell) : null;
  if (query === null && key === null) return null;
  return {
    query: query === null ? null : Math.min(query, view.queries.length - 1),
    key: key === null ? null : Math.min(key, view.keys.length - 1),
  };
}

/** The cells that are seen, whole or in part. @param {Placed} placed @param {Cells} view @returns {Area} */
export function visible({ zoom, seen }, view) {
  return {
    top: Math.floor(zoom.y),
    left: Math.floor(zoom.x),
    bottom: Math.min(view.queries.length, Math.ceil(zoom.y + seen.down)),
    right: Math.min(view.keys.length, Math.ceil(zoom.x + seen.across)),
  };
}

/** The pixel where a cell begins. @param {Placed} placed @param {number} query @param {number} key @returns {[number, number]} */
export function corner({ left, top, cell, zoom }, query, key) {
  return [left + (key - zoom.x) * cell, top + (query - zoom.y) * cell];
}
