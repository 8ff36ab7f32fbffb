/** One head as lines: queries at the left, keys at the right, a line for each look. */
import { shortened } from "./matrix.js";
import { number } from "./headView.js";

/**
 * @import { Texts } from "./i18n.js"
 * @import { Size, Names } from "./layout.js"
 * @import { Pen, Theme } from "./renderer.js"
 * @import { Pointer } from "./state.js"
 * @import { Link, View } from "./headView.js"
 * @typedef {{query: number, key: number, weight: number}} Line
 * @typedef {{mode: "lines", row: number, top: number, room: number, left: number, right: number,
 *   edge: {left: number, right: number}, scroll: number, size: Size}} Placed
 */

const ROW = { least: 20, most: 30 }; // pixels
const HEAD = 30; // room for the names of both sides
const WIDEST = 860;
const FAINTEST = 0.02; // weaker lines are never drawn: they would only grey the paper

/**
 * Place both columns; a longer list is scrolled.
 * @param {Size} size
 * @param {View} view
 * @param {number} scroll
 * @returns {Placed}
 */
export function layout(size, view, scroll) {
  const count = Math.max(view.queries.length, view.keys.length);
  const room = Math.max(1, size.height - HEAD - 12);
  const row = Math.min(ROW.most, Math.max(ROW.least, Math.floor(room / count)));
  const width = Math.min(size.width, WIDEST);
  const start = (size.width - width) / 2;
  return {
    mode: "lines",
    row,
    top: HEAD,
    room,
    left: start + width * 0.32,
    right: start + width * 0.68,
    edge: { left: start, right: start + width },
    scroll: Math.min(Math.max(scroll, 0), Math.max(0, count * row - room)),
    size,
  };
}

/** Scroll as little as needed to show a token. @param {Placed} placed @param {number|null} place */
export function revealed({ scroll, row, room }, place) {
  return place === null ? scroll : Math.min(Math.max(scroll, (place + 1) * row - room), place * row);
}

/**
 * Tell which word is under a pixel.
 * @param {Placed} placed
 * @param {View} view
 * @param {number} x
 * @param {number} y
 * @returns {Pointer|null}
 */
export function hit({ row, top, left, right, edge, scroll }, view, x, y) {
  if (y < top) return null;
  const place = Math.floor((y - top + scroll) / row);
  if (x >= edge.left && x <= left + 12) return place < view.queries.length ? { query: place, key: null } : null;
  if (x >= right - 12 && x <= edge.right) return place < view.keys.length ? { query: null, key: place } : null;
  return null;
}

/** The middle of a token's row. @param {Placed} placed @param {number} place */
function heightOf({ row, top, scroll }, place) {
  return top + (place + 0.5) * row - scroll;
}

/**
 * List the lines to draw: those of what is pointed at, else all that are strong enough.
 * @param {View} view
 * @param {Placed} placed
 * @param {Pointer} pointer
 * @param {number} threshold
 * @returns {Line[]}
 */
export function shownLinks(view, placed, { query, key }, threshold) {
  const least = Math.max(threshold, FAINTEST);
  const strong = (/** @type {Link[]} */ links) => links.filter(({ weight }) => weight >= least);
  if (query !== null && key !== null) {
    const weight = view.at(query, key);
    return weight ? [{ query, key, weight }] : [];
  }
  if (query !== null) return strong(view.row(query)).map(({ place, weight }) => ({ query, key: place, weight }));
  if (key !== null) return strong(view.column(key)).map(({ place, weight }) => ({ query: place, key, weight }));
  const first = Math.max(0, Math.floor(placed.scroll / placed.row));
  const last = Math.min(view.queries.length, Math.ceil((placed.scroll + placed.room) / placed.row));
  const found = [];
  for (let place = first; place < last; place++) {
    for (const link of strong(view.row(place))) found.push({ query: place, key: link.place, weight: link.weight });
  }
  return found;
}

/**
 * Draw both columns and the lines between them.
 * @param {Pen} pen
 * @param {View} view
 * @param {Placed} placed
 * @param {{pointer: Pointer, threshold: number, top: number, theme: Theme, texts: Texts, names: Names}} how
 */
export function draw(pen, view, placed, { pointer, threshold, top, theme, texts, names }) {
  const links = shownLinks(view, placed, pointer, threshold);
  const pointed = pointer.query !== null || pointer.key !== null;
  pen.clipped(placed.edge.left, placed.top, placed.edge.right - placed.edge.left, placed.room + 8, () => {
    const numbers = pointed ? new Map(links.map((link) => [pointer.query === null ? link.query : link.key, link.weight])) : null;
    const other = pointer.query === null ? "query" : "key";
    drawColumn(pen, view, placed, "query", { pointer, theme, top, numbers: other === "query" ? numbers : null });
    drawColumn(pen, view, placed, "key", { pointer, theme, top, numbers: other === "key" ? numbers : null });
    for (const link of [...links].reverse()) drawLink(pen, placed, link, top, theme, pointed);
    for (const link of goldLinks(view, pointer)) drawGold(pen, placed, link, theme);
  });
  const style = { colour: theme.faint, size: 12 };
  pen.text(names.queries, placed.left, 14, { ...style, align: "right" });
  pen.text(names.keys, placed.right, 14, style);
  if (view.gold.size) {
    const middle = (placed.left + placed.right) / 2;
    pen.text(texts.goldLine, middle, placed.size.height - 8, { ...style, align: "center", halo: theme.paper });
  }
}

/** List the gold links of what is pointed at, else all. @param {View} view @param {Pointer} pointer */
export function goldLinks(view, pointer) {
  /** @param {keyof Pointer} side @param {number} place */
  const isShown = (side, place) => pointer[side] === null || pointer[side] === place;
  return [...view.gold]
    .map((name) => name.split(",").map(Number))
    .filter(([query, key]) => isShown("query", query) && isShown("key", key))
    .map(([query, key]) => ({ query, key }));
}

/** @param {Pen} pen @param {Placed} placed @param {{query: number, key: number}} link @param {Theme} theme */
function drawGold(pen, placed, { query, key }, theme) {
  const style = { colour: theme.pointer, line: 1.25, alpha: 0.9, dash: [4, 3] };
  pen.curve(placed.left + 8, heightOf(placed, query), placed.right - 8, heightOf(placed, key), style);
}

/**
 * @param {Pen} pen
 * @param {Placed} placed
 * @param {Line} link
 * @param {number} top
 * @param {Theme} theme
 * @param {boolean} pointed
 */
function drawLink(pen, placed, { query, key, weight }, top, theme, pointed) {
  const share = Math.min(1, weight / top);
  pen.curve(placed.left + 8, heightOf(placed, query), placed.right - 8, heightOf(placed, key), {
    colour: theme.accent,
    line: 0.75 + 3.5 * share,
    alpha: pointed ? 0.25 + 0.75 * share : 0.08 + 0.82 * share,
  });
}

/**
 * @param {Pen} pen
 * @param {View} view
 * @param {Placed} placed
 * @param {keyof Pointer} side
 * @param {{pointer: Pointer, theme: Theme, top: number, numbers: Map<number, number>|null}} how
 */
function drawColumn(pen, view, placed, side, { pointer, theme, top, numbers }) {
  const groups = side === "query" ? view.queries : view.keys;
  const first = Math.max(0, Math.floor(placed.scroll / placed.row));
  const last = Math.min(groups.length, Math.ceil((placed.scroll + placed.room) / placed.row) + 1);
  const atLeft = side === "query";
  for (let place = first; place < last; place++) {
    const y = heightOf(placed, place);
    const isPointed = pointer[side] === place;
    const weight = numbers?.get(place);
    const edge = atLeft ? placed.edge.left : placed.right - 4;
    const width = atLeft ? placed.left + 4 - edge : placed.edge.right - edge;
    const alpha = isPointed ? 0.16 : weight ? 0.42 * Math.min(1, weight / top) : 0;
    if (alpha) pen.rect(edge, y - placed.row / 2 + 1, width, placed.row - 2, { fill: theme.accent, alpha });
    const colour = isPointed ? theme.accent : groups[place].special ? theme.faint : theme.ink;
    const text = shortened(groups[place].text, 24);
    pen.text(text, atLeft ? placed.left : placed.right, y, { align: atLeft ? "right" : "left", colour, bold: isPointed, size: 14 });
    if (weight) {
      const style = { colour: theme.faint, size: 12 };
      const x = atLeft ? placed.edge.left + 8 : placed.edge.right - 8;
      pen.text(number(weight, view.step), x, y, { ...style, align: atLeft ? "left" : "right" });
    }
  }
}
