/** One head as a matrix: a row per query, a column per key, near or far. */
import { ink } from "./colourScale.js";
import { corner, visible } from "./layout.js";
import { WEIGHTS } from "./scale.js";

/**
 * @import { Texts } from "./i18n.js"
 * @import { Pen, Theme } from "./renderer.js"
 * @import { Names, Placed } from "./layout.js"
 * @import { Scale } from "./scale.js"
 * @import { Pointer } from "./state.js"
 * @import { Cells } from "./headView.js"
 * @typedef {{top: number, threshold: number, scale: Scale}} How
 */

const NUMBERED = 34; // pixels of a cell that shows its number
const APART = 15; // from one label to the next
const FAR = 3; // words that are not shown between two that are
const SLANT = -55; // degrees

/**
 * Draw the matrix, its words and its scale.
 * @param {Pen} pen
 * @param {Cells} view
 * @param {Placed} placed
 * @param {{top: number, threshold: number, theme: Theme, texts: Texts, names: Names, ratio?: number, scale?: Scale}} how
 */
export function draw(pen, view, placed, { top, threshold, theme, texts, names, ratio = 1, scale = WEIGHTS }) {
  const how = { top, threshold, scale };
  drawCells(pen, view, placed, how, ratio);
  pen.clipped(placed.left, placed.top, placed.width, placed.height, () => {
    if (placed.cell >= NUMBERED) drawNumbers(pen, view, placed, how);
    drawGold(pen, view, placed, how);
  });
  drawWords(pen, view, placed, theme);
  drawScale(pen, view, placed, { top, theme, texts, names, scale });
}

/** @param {Pen} pen @param {Cells} view @param {Placed} placed @param {How} how @param {number} ratio */
function drawCells(pen, view, placed, { top, threshold, scale }, ratio) {
  const area = visible(placed, view);
  const { cell, left, zoom } = placed;
  const [rows, columns] = [area.bottom - area.top, area.right - area.left];
  // cells smaller than a pixel share one, which shows the strongest of them
  const height = Math.max(1, Math.min(rows, Math.floor(rows * cell * ratio)));
  const width = Math.max(1, Math.min(columns, Math.floor(columns * cell * ratio)));
  const bytes = scale.pixels(view.raster(area, height, width), top, threshold);
  const x = left + (area.left - zoom.x) * cell;
  const y = placed.top + (area.top - zoom.y) * cell;
  pen.clipped(left, placed.top, placed.width, placed.height, () =>
    pen.image(bytes, width, height, x, y, columns * cell, rows * cell),
  );
}

/** @param {Pen} pen @param {Cells} view @param {Placed} placed @param {How} how */
function drawNumbers(pen, view, placed, { top, threshold, scale }) {
  const area = visible(placed, view);
  for (let query = area.top; query < area.bottom; query++) {
    for (let key = area.left; key < area.right; key++) {
      const weight = view.at(query, key);
      if (weight === null) continue;
      const [x, y] = corner(placed, query, key);
      const colour = ink(scale.colour(Math.abs(weight) < threshold ? 0 : weight / top));
      const middle = placed.cell / 2;
      const size = placed.cell < 44 ? 11 : 13;
      pen.text(scale.number(weight, view.step), x + middle, y + middle, { align: "center", colour, size });
    }
  }
}

/** @param {Pen} pen @param {Cells} view @param {Placed} placed @param {How} how */
function drawGold(pen, view, placed, { top, scale }) {
  if (placed.cell < 5) return;
  const area = visible(placed, view);
  for (const name of view.gold) {
    const [query, key] = name.split(",").map(Number);
    if (query < area.top || query >= area.bottom || key < area.left || key >= area.right) continue;
    const [x, y] = corner(placed, query, key);
    const inset = Math.max(1, placed.cell * 0.07);
    const side = placed.cell - 2 * inset;
    const stroke = ink(scale.colour((view.at(query, key) ?? 0) / top));
    pen.rect(x + inset, y + inset, side, side, { stroke, line: 1.5 });
  }
}

/** @param {Pen} pen @param {Cells} view @param {Placed} placed @param {Theme} theme */
function drawWords(pen, view, placed, theme) {
  const every = spacing(placed.cell);
  const area = visible(placed, view);
  for (let query = area.top; query < area.bottom; query++) {
    if (query % every === 0) drawWord(pen, view, placed, "query", query, theme, false);
  }
  for (let key = area.left; key < area.right; key++) {
    if (key % every === 0) drawWord(pen, view, placed, "key", key, theme, false);
  }
}

/** Every how many tokens one is named: by words as dense as they fit, by positions in round steps. @param {number} cell */
export function spacing(cell) {
  if (APART / cell <= FAR) return Math.ceil(APART / cell);
  return [5, 10, 20, 50, 100, 200, 500, 1000].find((steps) => steps * cell >= 2 * APART) ?? 2000;
}

/**
 * @param {Pen} pen
 * @param {Cells} view
 * @param {Placed} placed
 * @param {keyof Pointer} side
 * @param {number} place
 * @param {Theme} theme
 * @param {boolean} pointed
 */
function drawWord(pen, view, placed, side, place, theme, pointed) {
  const group = (side === "query" ? view.queries : view.keys)[place];
  // far apart, words make no text any more: their positions say more
  const text = pointed || APART / placed.cell <= FAR ? shortened(group.text) : String(place);
  const [x, y] = corner(placed, side === "query" ? place : placed.zoom.y, side === "key" ? place : placed.zoom.x);
  const middle = placed.cell / 2;
  const isFaint = group.special || text === String(place);
  const colour = pointed ? theme.accent : isFaint ? theme.faint : theme.ink;
  const style = { colour, bold: pointed, halo: pointed ? theme.paper : undefined };
  if (side === "query") {
    if (y + middle < placed.top || y + middle > placed.top + placed.height) return;
    pen.text(text, placed.left - 8, y + middle, { ...style, align: "right" });
    return;
  }
  if (x + middle < placed.left || x + middle > placed.left + placed.width) return;
  if (placed.isUpright) {
    pen.text(text, x + middle, placed.top - 12, { ...style, align: "center" });
  } else {
    pen.text(text, x + middle, placed.top - 9, { ...style, turn: SLANT });
  }
}

/** Cut a text that would not fit. @param {string} text */
export function shortened(text, most = 18) {
  const signs = [...text];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : text;
}

/**
 * @param {Pen} pen
 * @param {Cells} view
 * @param {Placed} placed
 * @param {{top: number, theme: Theme, texts: Texts, names: Names, scale: Scale}} how
 */
function drawScale(pen, view, placed, { top, theme, texts, names, scale }) {
  const room = scale.least < 0 ? 20 : 0; // for the number at its low end
  const [x, y, width, height] = [placed.foot + room, placed.top + placed.height + 16, 120, 8];
  const shares = Float32Array.from({ length: 60 }, (_, n) => scale.least + ((1 - scale.least) * n) / 59);
  pen.image(scale.pixels(shares, 1), 60, 1, x, y, width, height);
  const style = { colour: theme.faint, size: 11 };
  const low = String(Number((scale.least * top).toFixed(2))).replace("-", "−");
  pen.text(low, x - 5, y + 4, { ...style, align: "right" });
  const end = `${Number(top.toFixed(2))} ${texts.weight}`;
  const gold = view.gold.size ? `  ·  ${texts.gold}` : "";
  pen.text(end + gold, x + width + 6, y + 4, style);
  const axes = texts.axes(names.queries, names.keys);
  const notes = placed.isNarrow ? axes : [axes.join("  ·  ")];
  if (!view.whole) notes.push(texts.coarse);
  notes.forEach((note, n) => pen.text(note, placed.foot, y + 21 + 16 * n, style));
}

/**
 * Draw what is pointed at over the matrix: its row, its column and their words.
 * @param {Pen} pen
 * @param {Cells} view
 * @param {Placed} placed
 * @param {Pointer} pointer
 * @param {Theme} theme
 */
export function drawPointer(pen, view, placed, { query, key }, theme) {
  const { left, top, width, height, cell } = placed;
  const line = { stroke: theme.pointer, line: 1.5 };
  pen.clipped(left - 1, top - 1, width + 2, height + 2, () => {
    if (query !== null) pen.rect(left, corner(placed, query, 0)[1], width, cell, { ...line, alpha: key === null ? 1 : 0.55 });
    if (key !== null) pen.rect(corner(placed, 0, key)[0], top, cell, height, { ...line, alpha: query === null ? 1 : 0.55 });
    if (query !== null && key !== null) pen.rect(...corner(placed, query, key), cell, cell, { ...line, line: 2.5 });
  });
  if (query !== null) drawWord(pen, view, placed, "query", query, theme, true);
  if (key !== null) drawWord(pen, view, placed, "key", key, theme, true);
}
