/** Weights over an image whose patches are the keys: of the selected query, or the mean of all queries. */
import { cividis, toCssColour } from "./colourScale.js";
import { truncate } from "./matrix.js";

/**
 * @import { HeadView } from "./headView.js"
 * @import { Size } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Renderer, Theme } from "./renderer.js"
 * @import { Selection } from "./state.js"
 * @import { PatchImage } from "./trace.js"
 * @typedef {{mode: "image", image: PatchImage, isOwn: boolean, left: number, top: number, width: number, height: number,
 *   list: {width: number, rowHeight: number, rows: number}, size: Size}} ImageLayout
 * `isOwn`: the queries are patches of the same image. `list` holds the queries beside the image.
 */

const LIST_WIDTH = 132;
const ROW_HEIGHT = 22;
const LEGEND_HEIGHT = 44;
const MARGIN = 8;
const MIN_LABEL_WIDTH = 200; // pixels beside the scale

/**
 * Lay out the image in its frame, with a list of the queries on its left.
 * @param {Size} size
 * @param {HeadView} view
 * @param {PatchImage} image
 * @param {boolean} isOwn
 * @returns {ImageLayout}
 */
export function layoutImage(size, view, image, isOwn) {
  const listWidth = Math.min(LIST_WIDTH, size.width / 3);
  const available = { width: size.width - listWidth - 2 * MARGIN, height: size.height - LEGEND_HEIGHT - 2 * MARGIN };
  const scale = Math.max(0.1, Math.min(available.width / image.width, available.height / image.height));
  const [width, height] = [image.width * scale, image.height * scale];
  const rows = Math.min(view.queries.length, Math.max(1, Math.floor((size.height - 2 * MARGIN) / ROW_HEIGHT)));
  return { mode: "image", image, isOwn, left: listWidth + MARGIN, top: MARGIN, width, height, list: { width: listWidth, rowHeight: ROW_HEIGHT, rows }, size };
}

/** Return the group index of each patch; -1 if it is collapsed. @param {PatchImage} image @param {HeadView["keys"]} groups */
function groupsOfPatches({ grid, first }, groups) {
  const at = new Map(groups.flatMap(({ positions }, n) => (positions.length === 1 ? [[positions[0], n]] : [])));
  return Array.from({ length: grid[0] * grid[1] }, (_, patch) => at.get(first + patch) ?? -1);
}

/**
 * Return the first query of the page of the list that has the selected one; pages stay put under the pointer.
 * @param {ImageLayout} layout
 * @param {number|null} query
 */
export function firstListed({ list }, query) {
  return Math.floor((query ?? 0) / list.rows) * list.rows;
}

/**
 * Return the query under a pixel: of the list, or the patch that is one. Other patches are keys.
 * @param {ImageLayout} layout
 * @param {HeadView} view
 * @param {number} x
 * @param {number} y
 * @param {Selection} selection
 * @returns {Selection|null}
 */
export function hitImage(layout, view, x, y, selection) {
  const { left, top, width, height, image, isOwn, list } = layout;
  if (x < list.width) {
    const row = Math.floor((y - MARGIN) / list.rowHeight);
    const query = firstListed(layout, selection.query) + row;
    return row >= 0 && row < list.rows && query < view.queries.length ? { query, key: null } : null;
  }
  if (x < left || y < top || x >= left + width || y >= top + height) return null;
  const [rows, columns] = image.grid;
  const patch = Math.floor(((y - top) / height) * rows) * columns + Math.floor(((x - left) / width) * columns);
  const group = groupsOfPatches(image, isOwn ? view.queries : view.keys)[patch];
  if (group < 0) return null;
  return isOwn ? { query: group, key: null } : { query: selection.query, key: group };
}

/**
 * Return the weights of the patches: of a query, or the mean of all.
 * @param {PatchImage} image
 * @param {HeadView} view
 * @param {number|null} query
 */
export function patchWeights(image, view, query) {
  const queries = query === null ? view.queries.map((_, n) => n) : [query];
  const mean = (/** @type {number} */ key) => queries.reduce((sum, n) => sum + (view.at(n, key) ?? 0), 0) / queries.length;
  return groupsOfPatches(image, view.keys).map((key) => (key < 0 ? 0 : mean(key)));
}

/**
 * Draw the image, the weights over it, the list of queries and the colour scale.
 * @param {Renderer} renderer
 * @param {HeadView} view
 * @param {ImageLayout} layout
 * @param {{opacity: number, selection: Selection, theme: Theme, texts: Texts}} style
 */
export function drawImageOverlay(renderer, view, layout, { opacity, selection, theme, texts }) {
  const { image, left, top, width, height, isOwn } = layout;
  const [rows, columns] = image.grid;
  const pixels = opacity > 0 ? image.grey : image.pixels;
  renderer.image(pixels, image.width, image.height, left, top, width, height);
  const weights = patchWeights(image, view, selection.query);
  const maximum = Math.max(...weights) || 1;
  const cell = { width: width / columns, height: height / rows };
  const corner = (/** @type {number} */ patch) => /** @type {[number, number]} */ ([left + (patch % columns) * cell.width, top + Math.floor(patch / columns) * cell.height]);
  if (opacity > 0) {
    weights.forEach((weight, patch) => {
      renderer.rect(...corner(patch), cell.width, cell.height, { fill: toCssColour(cividis(weight / maximum)), alpha: opacity });
    });
  }
  const selected = isOwn ? selection.query : selection.key;
  const patch = selected === null ? -1 : groupsOfPatches(image, isOwn ? view.queries : view.keys).indexOf(selected);
  if (patch >= 0) renderer.rect(...corner(patch), cell.width, cell.height, { stroke: theme.highlight, lineWidth: 2.5 });
  drawList(renderer, view, layout, selection.query, theme);
  drawScale(renderer, layout, maximum, selection.query === null ? texts.meanOfQueries : texts.weight, theme);
}

/** @param {Renderer} renderer @param {HeadView} view @param {ImageLayout} layout @param {number|null} query @param {Theme} theme */
function drawList(renderer, view, layout, query, theme) {
  const { list } = layout;
  const first = firstListed(layout, query);
  for (let row = 0; row < Math.min(list.rows, view.queries.length - first); row++) {
    const isSelected = first + row === query;
    const y = MARGIN + row * list.rowHeight;
    if (isSelected) renderer.rect(0, y, list.width - 4, list.rowHeight, { fill: theme.highlight, alpha: 0.25 });
    const style = { colour: isSelected ? theme.text : theme.muted, bold: isSelected, size: 12 };
    renderer.text(truncate(view.queries[first + row].text, 16), 6, y + list.rowHeight / 2, style);
  }
}

/** @param {Renderer} renderer @param {ImageLayout} layout @param {number} maximum @param {string} label @param {Theme} theme */
function drawScale(renderer, { left, top, height, size }, maximum, label, theme) {
  const [x, y, steps] = [left + 14, top + height + 18, 60];
  const isNarrow = size.width - (x + 2 * steps) < MIN_LABEL_WIDTH; // the label is below the scale, not beside it
  for (let n = 0; n < steps; n++) renderer.rect(x + 2 * n, y, 2.5, 8, { fill: toCssColour(cividis(n / (steps - 1))) });
  const style = { colour: theme.muted, size: 11 };
  renderer.text("0", x - 5, y + 4, { ...style, align: "right" });
  const end = Number(maximum.toPrecision(2));
  renderer.text(isNarrow ? String(end) : `${end} ${label}`, x + 2 * steps + 6, y + 4, style);
  if (isNarrow) renderer.text(label, left, y + 20, style);
}
