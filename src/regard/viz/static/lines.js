/** Lines view of a head: queries at the left, keys at the right, and a line per link. */
import { formatWeight } from "./headView.js";
import { rowCentre } from "./layout.js";
import { truncate } from "./matrix.js";

/**
 * @import { HeadView, Link } from "./headView.js"
 * @import { AxisNames, LinesLayout } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Renderer, Theme } from "./renderer.js"
 * @import { Selection } from "./state.js"
 * @typedef {{query: number, key: number, weight: number}} Line
 */

const MIN_WEIGHT = 0.02; // weaker lines are never drawn: together they would only grey the background

/**
 * Return the lines to draw: those of the selection, or without one all that are strong enough.
 * @param {HeadView} view
 * @param {LinesLayout} layout
 * @param {Selection} selection
 * @param {number} threshold
 * @returns {Line[]}
 */
export function visibleLines(view, layout, { query, key }, threshold) {
  const minimum = Math.max(threshold, MIN_WEIGHT);
  const strong = (/** @type {Link[]} */ links) => links.filter(({ weight }) => weight >= minimum);
  if (query !== null && key !== null) {
    const weight = view.at(query, key);
    return weight ? [{ query, key, weight }] : [];
  }
  if (query !== null) return strong(view.row(query)).map(({ index, weight }) => ({ query, key: index, weight }));
  if (key !== null) return strong(view.column(key)).map(({ index, weight }) => ({ query: index, key, weight }));
  const first = Math.max(0, Math.floor(layout.scroll / layout.rowHeight));
  const end = Math.min(view.queries.length, Math.ceil((layout.scroll + layout.visibleHeight) / layout.rowHeight));
  const lines = [];
  for (let row = first; row < end; row++) {
    for (const { index, weight } of strong(view.row(row))) lines.push({ query: row, key: index, weight });
  }
  return lines;
}

/**
 * Return the gold links of the selection, or without one all of them.
 * @param {HeadView} view
 * @param {Selection} selection
 */
export function goldLinks(view, selection) {
  /** @param {keyof Selection} axis @param {number} index */
  const isVisible = (axis, index) => selection[axis] === null || selection[axis] === index;
  return [...view.gold]
    .map((cell) => cell.split(",").map(Number))
    .filter(([query, key]) => isVisible("query", query) && isVisible("key", key))
    .map(([query, key]) => ({ query, key }));
}

/**
 * Draw both columns of tokens and the lines between them.
 * @param {Renderer} renderer
 * @param {HeadView} view
 * @param {LinesLayout} layout
 * @param {{selection: Selection, threshold: number, maximum: number, theme: Theme, texts: Texts, axisNames: AxisNames}} style
 */
export function drawLines(renderer, view, layout, { selection, threshold, maximum, theme, texts, axisNames }) {
  const lines = visibleLines(view, layout, selection, threshold);
  const isSelected = selection.query !== null || selection.key !== null;
  const { outer } = layout;
  renderer.clip(outer.left, layout.top, outer.right - outer.left, layout.visibleHeight + 8, () => {
    // weights are written on the axis opposite to the selected token
    const opposite = selection.query === null ? "query" : "key";
    const weights = isSelected ? new Map(lines.map((line) => [line[opposite], line.weight])) : null;
    drawColumn(renderer, view, layout, "query", { selection, theme, maximum, weights: opposite === "query" ? weights : null });
    drawColumn(renderer, view, layout, "key", { selection, theme, maximum, weights: opposite === "key" ? weights : null });
    for (const line of [...lines].reverse()) drawLine(renderer, layout, line, maximum, theme, isSelected);
    for (const link of goldLinks(view, selection)) drawGoldLine(renderer, layout, link, theme);
  });
  const style = { colour: theme.muted, size: 12 };
  renderer.text(axisNames.queries, layout.left, 14, { ...style, align: "right" });
  renderer.text(axisNames.keys, layout.right, 14, style);
  if (view.gold.size) {
    const middle = (layout.left + layout.right) / 2;
    renderer.text(texts.goldLine, middle, layout.size.height - 8, { ...style, align: "center", halo: theme.surface });
  }
}

/**
 * @param {Renderer} renderer
 * @param {LinesLayout} layout
 * @param {{query: number, key: number}} link
 * @param {Theme} theme
 */
function drawGoldLine(renderer, layout, { query, key }, theme) {
  const style = { colour: theme.highlight, lineWidth: 1.25, alpha: 0.9, dash: [4, 3] };
  renderer.curve(layout.left + 8, rowCentre(layout, query), layout.right - 8, rowCentre(layout, key), style);
}

/**
 * @param {Renderer} renderer
 * @param {LinesLayout} layout
 * @param {Line} line
 * @param {number} maximum
 * @param {Theme} theme
 * @param {boolean} isSelected
 */
function drawLine(renderer, layout, { query, key, weight }, maximum, theme, isSelected) {
  const fraction = Math.min(1, weight / maximum);
  renderer.curve(layout.left + 8, rowCentre(layout, query), layout.right - 8, rowCentre(layout, key), {
    colour: theme.accent,
    lineWidth: 0.75 + 3.5 * fraction,
    alpha: isSelected ? 0.25 + 0.75 * fraction : 0.08 + 0.82 * fraction,
  });
}

/**
 * @param {Renderer} renderer
 * @param {HeadView} view
 * @param {LinesLayout} layout
 * @param {keyof Selection} axis
 * @param {{selection: Selection, theme: Theme, maximum: number, weights: Map<number, number>|null}} style
 */
function drawColumn(renderer, view, layout, axis, { selection, theme, maximum, weights }) {
  const { rowHeight, outer } = layout;
  const groups = axis === "query" ? view.queries : view.keys;
  const first = Math.max(0, Math.floor(layout.scroll / rowHeight));
  const end = Math.min(groups.length, Math.ceil((layout.scroll + layout.visibleHeight) / rowHeight) + 1);
  const isLeft = axis === "query";
  const left = isLeft ? outer.left : layout.right - 4;
  const width = isLeft ? layout.left + 4 - left : outer.right - left;
  for (let row = first; row < end; row++) {
    const y = rowCentre(layout, row);
    const isSelected = selection[axis] === row;
    const weight = weights?.get(row);
    const alpha = isSelected ? 0.16 : weight ? 0.42 * Math.min(1, weight / maximum) : 0;
    if (alpha) renderer.rect(left, y - rowHeight / 2 + 1, width, rowHeight - 2, { fill: theme.accent, alpha });
    const colour = isSelected ? theme.accent : groups[row].isSpecial ? theme.muted : theme.text;
    const text = truncate(groups[row].text, 24);
    renderer.text(text, isLeft ? layout.left : layout.right, y, { align: isLeft ? "right" : "left", colour, bold: isSelected, size: Math.min(14, rowHeight - 4) });
    if (weight) {
      const x = isLeft ? outer.left + 8 : outer.right - 8;
      const align = isLeft ? "left" : "right";
      renderer.text(formatWeight(weight, view.step), x, y, { align, colour: theme.muted, size: 12 });
    }
  }
}
