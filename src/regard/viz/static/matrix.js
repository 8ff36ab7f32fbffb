/** Matrix view of a head: a heat map with a row per query and a column per key. */
import { contrastingColour, WEIGHT_SCALE } from "./colourScale.js";
import { cellOrigin, visibleRegion } from "./layout.js";

/**
 * @import { ColourScale } from "./colourScale.js"
 * @import { MatrixData } from "./headView.js"
 * @import { AxisNames, MatrixLayout } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Renderer, Theme } from "./renderer.js"
 * @import { Selection } from "./state.js"
 * @typedef {{maximum: number, threshold: number, scale: ColourScale}} CellStyle
 * @typedef {{maximum: number, threshold: number, theme: Theme, texts: Texts, axisNames: AxisNames, pixelRatio?: number,
 *   scale?: ColourScale, measureText: (text: string) => number}} MatrixStyle
 * `measureText` returns the width of a text of 13 pixels.
 */

const MIN_CELL_WITH_VALUE = 34; // pixels
const MIN_LEGEND_WIDTH = 190; // pixels
const LABEL_SPACING = 15; // pixels
const NOTE_MARGIN = 4; // pixels at the right of the notes
const MAX_SKIPPED_LABELS = 3; // beyond that, positions are shown instead of words
const LABEL_ANGLE = -55; // degrees

/**
 * Draw the cells, the labels of both axes and the legend.
 * @param {Renderer} renderer
 * @param {MatrixData} view
 * @param {MatrixLayout} layout
 * @param {MatrixStyle} style
 */
export function drawMatrix(renderer, view, layout, { maximum, threshold, theme, texts, axisNames, measureText, pixelRatio = 1, scale = WEIGHT_SCALE }) {
  const cellStyle = { maximum, threshold, scale };
  drawCells(renderer, view, layout, cellStyle, pixelRatio);
  renderer.clip(layout.left, layout.top, layout.width, layout.height, () => {
    if (layout.cell >= MIN_CELL_WITH_VALUE) drawValues(renderer, view, layout, cellStyle);
    drawGold(renderer, view, layout, cellStyle);
  });
  drawLabels(renderer, view, layout, theme);
  drawAxisTitles(renderer, layout, axisNames, theme);
  drawLegend(renderer, view, layout, { maximum, theme, texts, scale, measureText });
}

/**
 * @param {Renderer} renderer
 * @param {MatrixData} view
 * @param {MatrixLayout} layout
 * @param {CellStyle} style
 * @param {number} pixelRatio
 */
function drawCells(renderer, view, layout, { maximum, threshold, scale }, pixelRatio) {
  const region = visibleRegion(layout, view);
  const { cell, left, top, zoom } = layout;
  const [rows, columns] = [region.bottom - region.top, region.right - region.left];
  // cells smaller than a pixel share one, which shows their maximum
  const height = Math.max(1, Math.min(rows, Math.floor(rows * cell * pixelRatio)));
  const width = Math.max(1, Math.min(columns, Math.floor(columns * cell * pixelRatio)));
  const pixels = scale.toPixels(view.rasterize(region, height, width), maximum, threshold);
  const x = left + (region.left - zoom.x) * cell;
  const y = top + (region.top - zoom.y) * cell;
  renderer.clip(left, top, layout.width, layout.height, () =>
    renderer.image(pixels, width, height, x, y, columns * cell, rows * cell),
  );
}

/** @param {Renderer} renderer @param {MatrixData} view @param {MatrixLayout} layout @param {CellStyle} style */
function drawValues(renderer, view, layout, { maximum, threshold, scale }) {
  const region = visibleRegion(layout, view);
  for (let query = region.top; query < region.bottom; query++) {
    for (let key = region.left; key < region.right; key++) {
      const weight = view.at(query, key);
      if (weight === null || Math.abs(weight) < threshold) continue;
      const [x, y] = cellOrigin(layout, query, key);
      const colour = contrastingColour(scale.colourAt(weight / maximum));
      const half = layout.cell / 2;
      const size = layout.cell < 44 ? 11 : 13;
      renderer.text(scale.format(weight, view.step), x + half, y + half, { align: "center", colour, size });
    }
  }
}

/** @param {Renderer} renderer @param {MatrixData} view @param {MatrixLayout} layout @param {CellStyle} style */
function drawGold(renderer, view, layout, { maximum, scale }) {
  if (layout.cell < 5) return;
  const region = visibleRegion(layout, view);
  for (const cell of view.gold) {
    const [query, key] = cell.split(",").map(Number);
    if (query < region.top || query >= region.bottom || key < region.left || key >= region.right) continue;
    const [x, y] = cellOrigin(layout, query, key);
    const inset = Math.max(1, layout.cell * 0.07);
    const side = layout.cell - 2 * inset;
    const stroke = contrastingColour(scale.colourAt((view.at(query, key) ?? 0) / maximum));
    renderer.rect(x + inset, y + inset, side, side, { stroke, lineWidth: 1.5 });
  }
}

/** @param {Renderer} renderer @param {MatrixData} view @param {MatrixLayout} layout @param {Theme} theme */
function drawLabels(renderer, view, layout, theme) {
  const step = labelStep(layout.cell);
  const region = visibleRegion(layout, view);
  for (let query = region.top; query < region.bottom; query++) {
    if (query % step === 0) drawLabel(renderer, view, layout, "query", query, theme, false);
  }
  for (let key = region.left; key < region.right; key++) {
    if (key % step === 0) drawLabel(renderer, view, layout, "key", key, theme, false);
  }
}

/**
 * Return how many tokens apart labels are: words as dense as they fit, positions in round steps.
 * @param {number} cell
 */
export function labelStep(cell) {
  if (LABEL_SPACING / cell <= MAX_SKIPPED_LABELS) return Math.ceil(LABEL_SPACING / cell);
  return [5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step * cell >= 2 * LABEL_SPACING) ?? 2000;
}

/**
 * @param {Renderer} renderer
 * @param {MatrixData} view
 * @param {MatrixLayout} layout
 * @param {keyof Selection} axis
 * @param {number} index
 * @param {Theme} theme
 * @param {boolean} isSelected
 */
function drawLabel(renderer, view, layout, axis, index, theme, isSelected) {
  const group = (axis === "query" ? view.queries : view.keys)[index];
  // isolated words out of a long text mean little; their positions mean more
  const text = isSelected || LABEL_SPACING / layout.cell <= MAX_SKIPPED_LABELS ? truncate(group.text) : String(index);
  const [x, y] = cellOrigin(layout, axis === "query" ? index : layout.zoom.y, axis === "key" ? index : layout.zoom.x);
  const half = layout.cell / 2;
  const isMuted = group.isSpecial || text === String(index);
  const colour = isSelected ? theme.accent : isMuted ? theme.muted : theme.text;
  const style = { colour, bold: isSelected, halo: isSelected ? theme.surface : undefined };
  if (axis === "query") {
    if (y + half < layout.top || y + half > layout.top + layout.height) return;
    renderer.text(text, layout.left - 8, y + half, { ...style, align: "right" });
    return;
  }
  if (x + half < layout.left || x + half > layout.left + layout.width) return;
  if (layout.hasUprightLabels) {
    renderer.text(text, x + half, layout.top - 12, { ...style, align: "center" });
  } else {
    renderer.text(text, x + half, layout.top - 9, { ...style, rotate: LABEL_ANGLE });
  }
}

/**
 * Write what a row is above the labels of the rows, and what a column is above those of the columns.
 * @param {Renderer} renderer
 * @param {MatrixLayout} layout
 * @param {AxisNames} axisNames
 * @param {Theme} theme
 */
function drawAxisTitles(renderer, layout, { queries, keys }, theme) {
  const style = { colour: theme.muted, size: 12 };
  renderer.text(`${queries} ↓`, layout.left - 8, layout.top - 12, { ...style, align: "right" });
  renderer.text(`${keys} →`, layout.left, 10, style);
}

/** Shorten a label that would not fit. @param {string} text */
export function truncate(text, maxLength = 18) {
  const characters = [...text];
  return characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join("")}…` : text;
}

/**
 * @param {Renderer} renderer
 * @param {MatrixData} view
 * @param {MatrixLayout} layout
 * @param {Pick<MatrixStyle, "maximum"|"theme"|"texts"|"measureText"> & {scale: ColourScale}} style
 */
function drawLegend(renderer, view, layout, { maximum, theme, texts, scale, measureText }) {
  const isNormalised = scale.minimum === 0 && maximum !== 1;
  const notes = [isNormalised ? texts.normalised : "", view.gold.size ? texts.goldCell : "", view.isDense ? "" : texts.approximate].filter(Boolean);
  const needsAllWidth = notes.length > 0 || layout.available.width < MIN_LEGEND_WIDTH;
  const rightmost = layout.labelWidth + layout.available.width + 16 - MIN_LEGEND_WIDTH; // a narrow matrix may be further right
  const left = needsAllWidth ? layout.footerLeft : Math.min(layout.left, rightmost);
  const indent = scale.minimum < 0 && left < layout.left ? 20 : 0; // for the label at the low end
  const [x, y, width, height] = [left + indent, layout.top + layout.height + 16, 120, 8];
  const fractions = Float32Array.from({ length: 60 }, (_, n) => scale.minimum + ((1 - scale.minimum) * n) / 59);
  renderer.image(scale.toPixels(fractions, 1), 60, 1, x, y, width, height);
  const style = { colour: theme.muted, size: 11 };
  const low = String(Number((scale.minimum * maximum).toFixed(2))).replace("-", "−");
  renderer.text(low, x - 5, y + 4, { ...style, align: "right" });
  const high = `${Number(maximum.toPrecision(2))} ${texts.weight}`;
  const lines = packNotes([high, ...notes], {
    first: layout.frameWidth - (x + width + 6) - NOTE_MARGIN,
    others: layout.frameWidth - left - NOTE_MARGIN,
    widthOf: (text) => (measureText(text) * style.size) / 13,
  });
  lines.forEach((line, n) => renderer.text(line, n ? left : x + width + 6, y + (n ? 5 + 16 * n : 4), style));
}

/**
 * Join notes to as few lines as their widths allow; a note that is too wide has a line of its own.
 * @param {string[]} notes
 * @param {{first: number, others: number, widthOf: (text: string) => number}} widths of the first line and of the others
 * @returns {string[]}
 */
export function packNotes([note, ...notes], { first, others, widthOf }) {
  const lines = [note];
  for (const next of notes) {
    const joined = `${lines.at(-1)}  ·  ${next}`;
    if (widthOf(joined) <= (lines.length === 1 ? first : others)) lines[lines.length - 1] = joined;
    else lines.push(next);
  }
  return lines;
}

/**
 * Draw the selection over the matrix: its row, its column and their labels.
 * @param {Renderer} renderer
 * @param {MatrixData} view
 * @param {MatrixLayout} layout
 * @param {Selection} selection
 * @param {Theme} theme
 */
export function drawSelection(renderer, view, layout, { query, key }, theme) {
  const { left, top, width, height, cell } = layout;
  const outline = { stroke: theme.highlight, lineWidth: 1.5 };
  renderer.clip(left - 1, top - 1, width + 2, height + 2, () => {
    if (query !== null) renderer.rect(left, cellOrigin(layout, query, 0)[1], width, cell, { ...outline, alpha: key === null ? 1 : 0.55 });
    if (key !== null) renderer.rect(cellOrigin(layout, 0, key)[0], top, cell, height, { ...outline, alpha: query === null ? 1 : 0.55 });
    if (query !== null && key !== null) renderer.rect(...cellOrigin(layout, query, key), cell, cell, { ...outline, lineWidth: 2.5 });
  });
  if (query !== null) drawLabel(renderer, view, layout, "query", query, theme, true);
  if (key !== null) drawLabel(renderer, view, layout, "key", key, theme, true);
}
