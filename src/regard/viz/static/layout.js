/** Layout and hit testing of both views of a head: the matrix, and the lines between two columns of tokens. */

/**
 * @import { HeadView, MatrixData, Region } from "./headView.js"
 * @import { Selection, Zoom } from "./state.js"
 * @typedef {{width: number, height: number}} Size in CSS pixels, as everything here
 * @typedef {{queries: string, keys: string}} AxisNames
 * @typedef {{mode: "matrix", left: number, top: number, cell: number, labelWidth: number, columns: number,
 *   hasUprightLabels: boolean, frameWidth: number, footerLeft: number, width: number, height: number, available: Size,
 *   visible: {columns: number, rows: number}, zoom: Zoom}} MatrixLayout
 * `cell` is the side of a cell; `visible` counts the cells on the screen, fractions included.
 * @typedef {{mode: "lines", rowHeight: number, top: number, visibleHeight: number, left: number, right: number,
 *   outer: {left: number, right: number}, scroll: number, size: Size}} LinesLayout
 * Query labels end at `left`, key labels start at `right`.
 * @typedef {MatrixLayout|LinesLayout|import("./imageOverlay.js").ImageLayout} ViewLayout
 */

const MAX_CELL = 60; // when all cells are shown
const MAX_ZOOMED_CELL = 72;
const MAX_LABEL_WIDTH = 130;
const FOOTER_HEIGHT = { wide: 60, narrow: 76 }; // of the colour scale and the notes
const AXIS_TITLE_HEIGHT = 18; // above the labels of the keys
const NARROW_WIDTH = 420; // below it the notes may need a line each
const ROW_HEIGHT = { min: 17, max: 30 };
const LINES_HEADER_HEIGHT = 30;
const MAX_LINES_WIDTH = 860;

/**
 * Lay out the matrix: its origin, the size of a cell, and the visible part.
 * @param {Size} size
 * @param {MatrixData} view
 * @param {Zoom} zoom
 * @param {(text: string) => number} measureText
 * @param {AxisNames} axisNames
 * @returns {MatrixLayout}
 */
export function layoutMatrix(size, view, zoom, measureText, axisNames) {
  const maxLabelWidth = (/** @type {MatrixData["keys"]} */ groups) =>
    Math.min(MAX_LABEL_WIDTH, groups.reduce((width, { text }) => Math.max(width, measureText(text)), 0));
  const labelWidth = Math.ceil(Math.max(maxLabelWidth(view.queries), measureText(`${axisNames.queries} ↓`))) + 28;
  const keyWidth = maxLabelWidth(view.keys);
  const [rows, columns] = [view.queries.length, view.keys.length];
  // a frame that is hidden or not yet laid out has no size; 1 avoids divisions by zero
  /** @param {number} top @param {number} right */
  const availableSize = (top, right) => ({
    width: Math.max(1, size.width - labelWidth - right),
    height: Math.max(1, size.height - top - (size.width < NARROW_WIDTH ? FOOTER_HEIGHT.narrow : FOOTER_HEIGHT.wide)),
  });
  const fittingCell = (/** @type {Size} */ area) => Math.min(MAX_CELL, area.width / columns, area.height / rows);
  let top = 24 + AXIS_TITLE_HEIGHT;
  let available = availableSize(top, 16);
  // slanted labels need more space; decided for the unzoomed matrix, so that nothing jumps while zooming
  if (keyWidth + 8 > fittingCell(available)) {
    top = Math.ceil(keyWidth * 0.82) + 24 + AXIS_TITLE_HEIGHT;
    available = availableSize(top, Math.ceil(keyWidth * 0.58) + 8);
  }
  const fit = Math.max(fittingCell(available), 0.05);
  const cell = Math.max(fit, Math.min(fit * zoom.scale, Math.max(MAX_ZOOMED_CELL, fit)));
  const visible = { columns: Math.min(columns, available.width / cell), rows: Math.min(rows, available.height / cell) };
  const left = centredLeft(labelWidth, available.width, columns, cell);
  return {
    mode: "matrix",
    left,
    top,
    cell,
    labelWidth,
    columns,
    hasUprightLabels: keyWidth + 8 <= cell,
    frameWidth: size.width,
    footerLeft: size.width < 700 ? 20 : left, // a narrow window needs all its width for the notes
    width: visible.columns * cell,
    height: visible.rows * cell,
    available,
    visible,
    zoom: {
      scale: cell / fit,
      x: Math.min(Math.max(zoom.x, 0), columns - visible.columns),
      y: Math.min(Math.max(zoom.y, 0), rows - visible.rows),
    },
  };
}

/**
 * Return the left edge of a matrix; one narrower than the available width is centred.
 * @param {number} labelWidth
 * @param {number} availableWidth
 * @param {number} columns
 * @param {number} cell
 */
function centredLeft(labelWidth, availableWidth, columns, cell) {
  return labelWidth + Math.floor((availableWidth - Math.min(availableWidth, columns * cell)) / 2);
}

/**
 * Return the zoom scaled by a factor, with the cell under the pixel (x, y) fixed.
 * @param {MatrixLayout} layout
 * @param {number} factor
 * @param {number} x
 * @param {number} y
 * @returns {Zoom}
 */
export function zoomAt(layout, factor, x, y) {
  const { zoom } = layout;
  const scale = Math.max(1, Math.min(zoom.scale * factor, (MAX_ZOOMED_CELL / layout.cell) * zoom.scale));
  const cell = (layout.cell * scale) / zoom.scale;
  const left = centredLeft(layout.labelWidth, layout.available.width, layout.columns, cell);
  const fromTop = y - layout.top;
  return {
    scale,
    x: zoom.x + (x - layout.left) / layout.cell - (x - left) / cell,
    y: zoom.y + fromTop / layout.cell - fromTop / cell,
  };
}

/**
 * Return the zoom moved by pixels.
 * @param {Pick<MatrixLayout, "zoom"|"cell">} layout
 * @param {number} dx
 * @param {number} dy
 * @returns {Zoom}
 */
export function pan({ zoom, cell }, dx, dy) {
  return { ...zoom, x: zoom.x + dx / cell, y: zoom.y + dy / cell };
}

/**
 * Return the zoom moved as little as needed to show a query and a key.
 * @param {Pick<MatrixLayout, "zoom"|"visible">} layout
 * @param {number|null} query
 * @param {number|null} key
 * @returns {Zoom}
 */
export function revealCell({ zoom, visible }, query, key) {
  /** @param {number} first @param {number} count @param {number|null} index */
  const reveal = (first, count, index) => (index === null ? first : Math.min(Math.max(first, index + 1 - count), index));
  return { ...zoom, x: reveal(zoom.x, visible.columns, key), y: reveal(zoom.y, visible.rows, query) };
}

/**
 * Return what is under a pixel of the matrix: a cell, the label of a row or column, or null.
 * @param {MatrixLayout} layout
 * @param {MatrixData} view
 * @param {number} x
 * @param {number} y
 * @returns {Selection|null}
 */
export function hitMatrix({ left, top, cell, width, height, zoom }, view, x, y) {
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

/**
 * Return the cells that are visible in full or in part.
 * @param {MatrixLayout} layout
 * @param {MatrixData} view
 * @returns {Region}
 */
export function visibleRegion({ zoom, visible }, view) {
  return {
    top: Math.floor(zoom.y),
    left: Math.floor(zoom.x),
    bottom: Math.min(view.queries.length, Math.ceil(zoom.y + visible.rows)),
    right: Math.min(view.keys.length, Math.ceil(zoom.x + visible.columns)),
  };
}

/**
 * Return the upper left pixel of a cell.
 * @param {MatrixLayout} layout
 * @param {number} query
 * @param {number} key
 * @returns {[number, number]}
 */
export function cellOrigin({ left, top, cell, zoom }, query, key) {
  return [left + (key - zoom.x) * cell, top + (query - zoom.y) * cell];
}

/**
 * Lay out the two columns of tokens; a list that is too long scrolls.
 * @param {Size} size
 * @param {HeadView} view
 * @param {number} scroll
 * @returns {LinesLayout}
 */
export function layoutLines(size, view, scroll) {
  const count = Math.max(view.queries.length, view.keys.length);
  const visibleHeight = Math.max(1, size.height - LINES_HEADER_HEIGHT - 12);
  const rowHeight = Math.min(ROW_HEIGHT.max, Math.max(ROW_HEIGHT.min, Math.floor(visibleHeight / count)));
  const width = Math.min(size.width, MAX_LINES_WIDTH);
  const start = (size.width - width) / 2;
  return {
    mode: "lines",
    rowHeight,
    top: LINES_HEADER_HEIGHT,
    visibleHeight,
    left: start + width * 0.32,
    right: start + width * 0.68,
    outer: { left: start, right: start + width },
    scroll: Math.min(Math.max(scroll, 0), Math.max(0, count * rowHeight - visibleHeight)),
    size,
  };
}

/**
 * Return whether a view is larger than its frame, so that dragging moves it.
 * @param {ViewLayout} layout
 * @param {MatrixData} view
 */
export function isPannable(layout, view) {
  if (layout.mode !== "lines") return layout.mode === "matrix" && layout.zoom.scale > 1;
  return Math.max(view.queries.length, view.keys.length) * layout.rowHeight > layout.visibleHeight;
}

/**
 * Return the scroll offset moved as little as needed to show a row.
 * @param {LinesLayout} layout
 * @param {number|null} row
 */
export function revealRow({ scroll, rowHeight, visibleHeight }, row) {
  return row === null ? scroll : Math.min(Math.max(scroll, (row + 1) * rowHeight - visibleHeight), row * rowHeight);
}

/**
 * Return the token under a pixel, or null.
 * @param {LinesLayout} layout
 * @param {HeadView} view
 * @param {number} x
 * @param {number} y
 * @returns {Selection|null}
 */
export function hitLines({ rowHeight, top, left, right, outer, scroll }, view, x, y) {
  if (y < top) return null;
  const row = Math.floor((y - top + scroll) / rowHeight);
  if (x >= outer.left && x <= left + 12) return row < view.queries.length ? { query: row, key: null } : null;
  if (x >= right - 12 && x <= outer.right) return row < view.keys.length ? { query: null, key: row } : null;
  return null;
}

/** Return the vertical centre of a row. @param {LinesLayout} layout @param {number} row */
export function rowCentre({ rowHeight, top, scroll }, row) {
  return top + (row + 0.5) * rowHeight - scroll;
}
