/** One head as a matrix: a row per query, a column per key, near or far. */
import { ink } from "./colour.js";
import { WEIGHTS } from "./scale.js";

const LARGEST = 60; // pixels of a cell when all are shown
const NEAREST = 72; // and when zoomed in
const NUMBERED = 34; // from here on a cell shows its number
const LONGEST = 130; // pixels of a word's label
const APART = 15; // from one label to the next
const FAR = 3; // words that are not shown between two that are
const SLANT = -55; // degrees
const FOOT = { wide: 60, narrow: 76 }; // room for the scale and notes
const NARROW = 420; // pixels in which the notes need a line each

/** Place the matrix: where it begins, how large a cell is, and which part is seen. */
export function layout(size, view, zoom, measure) {
  const widest = (groups) => Math.min(LONGEST, groups.reduce((most, { text }) => Math.max(most, measure(text)), 0));
  const words = Math.ceil(widest(view.queries)) + 28;
  const keyWidth = widest(view.keys);
  const [down, across] = [view.queries.length, view.keys.length];
  const upright = 24;
  const slanted = Math.ceil(keyWidth * 0.82) + 24;
  // a frame that is hidden or not yet laid out has no room at all
  const room = (top, right) => ({
    width: Math.max(1, size.width - words - right),
    height: Math.max(1, size.height - top - (size.width < NARROW ? FOOT.narrow : FOOT.wide)),
  });
  const fits = (area) => Math.min(LARGEST, area.width / across, area.height / down);
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

/** A map narrower than its area stands in the middle of it. */
function centred(words, room, across, cell) {
  return words + Math.floor((room - Math.min(room, across * cell)) / 2);
}

/** Zoom by a factor, while the cell under the pixel (x, y) stays where it is. */
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

/** Move the seen part by pixels. */
export function panned({ zoom, cell }, across, down) {
  return { ...zoom, x: zoom.x + across / cell, y: zoom.y + down / cell };
}

/** Move the seen part as little as needed to show a query and a key. */
export function revealed({ zoom, seen }, query, key) {
  const into = (first, count, place) =>
    place === null ? first : Math.min(Math.max(first, place + 1 - count), place);
  return { ...zoom, x: into(zoom.x, seen.across, key), y: into(zoom.y, seen.down, query) };
}

/** Tell what is under a pixel: a cell, a word at the edge, or nothing. */
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

/** Draw the matrix, its words and its scale. */
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

/** The cells that are seen, whole or in part. */
export function visible({ zoom, seen }, view) {
  return {
    top: Math.floor(zoom.y),
    left: Math.floor(zoom.x),
    bottom: Math.min(view.queries.length, Math.ceil(zoom.y + seen.down)),
    right: Math.min(view.keys.length, Math.ceil(zoom.x + seen.across)),
  };
}

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

function corner({ left, top, cell, zoom }, query, key) {
  return [left + (key - zoom.x) * cell, top + (query - zoom.y) * cell];
}

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

/** Every how many tokens one is named: by words as dense as they fit, by positions in round steps. */
export function spacing(cell) {
  if (APART / cell <= FAR) return Math.ceil(APART / cell);
  return [5, 10, 20, 50, 100, 200, 500, 1000].find((steps) => steps * cell >= 2 * APART) ?? 2000;
}

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

/** Cut a text that would not fit. */
export function shortened(text, most = 18) {
  const signs = [...text];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : text;
}

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

/** Draw what is pointed at over the matrix: its row, its column and their words. */
export function drawPointer(pen, view, placed, { query, key }, theme) {
  const { left, top, width, height, cell } = placed;
  const line = { stroke: theme.pointer, line: 1.5 };
  pen.clipped(left - 1, top - 1, width + 2, height + 2, () => {
    if (query !== null) pen.rect(left, corner(placed, query, 0)[1], width, cell, { ...line, alpha: key === null ? 1 : 0.55 });
    if (key !== null) pen.rect(corner(placed, 0, key)[0], top, cell, height, { ...line, alpha: query === null ? 1 : 0.55 });
    if (query !== null && key !== null) pen.rect(...corner(placed, query, key), cell, cell, { ...line, line: 2.5 });
  });
  for (const [side, place] of [["query", query], ["key", key]]) {
    if (place !== null) drawWord(pen, view, placed, side, place, theme, true);
  }
}
