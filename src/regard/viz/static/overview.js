/** All heads of one attention at a glance: a row per layer, a column per head. */
import { pixels } from "./colourScale.js";

/**
 * @import { Pen, Theme } from "./renderer.js"
 * @import { Stack } from "./mapGroups.js"
 * @import { View } from "./headView.js"
 * @typedef {{side: number, pitch: number, width: number, height: number}} Placed
 */

const THUMBNAIL = { least: 16, most: 64 }; // pixels
const GAP = 5;
const EDGE = { left: 26, top: 22 }; // room for the numbers of layers and heads

/** Place the thumbnails in a width. @param {number} width @param {Stack} stack @returns {Placed} */
export function layout(width, stack) {
  const heads = Math.max(...stack.looks.map((look) => look.heads.length));
  const room = (width - EDGE.left) / heads - GAP;
  const side = Math.floor(Math.min(THUMBNAIL.most, Math.max(THUMBNAIL.least, room)));
  const pitch = side + GAP;
  return {
    side,
    pitch,
    width: EDGE.left + heads * pitch,
    height: EDGE.top + stack.looks.length * pitch,
  };
}

/** Tell which head is under a pixel. @param {Placed} placed @param {Stack} stack @param {number} x @param {number} y */
export function hit({ pitch }, stack, x, y) {
  const [head, layer] = [Math.floor((x - EDGE.left) / pitch), Math.floor((y - EDGE.top) / pitch)];
  const isThere = layer >= 0 && head >= 0 && head < (stack.looks[layer]?.heads.length ?? 0);
  return isThere ? { layer, head } : null;
}

/** Number the layers and the heads. @param {Pen} pen @param {Stack} stack @param {Placed} placed @param {Theme} theme */
export function drawNumbers(pen, stack, placed, theme) {
  const style = { colour: theme.faint, size: 11 };
  const most = Math.max(...stack.looks.map((look) => look.heads.length));
  const common = stack.looks.find((look) => look.heads.length === most)?.heads ?? [];
  const every = Math.ceil(18 / placed.pitch);
  common.forEach((head, place) => {
    const x = EDGE.left + place * placed.pitch + placed.side / 2;
    if (place % every === 0) pen.text(String(head), x, 10, { ...style, align: "center" });
  });
  stack.looks.forEach((_, layer) => {
    const y = EDGE.top + layer * placed.pitch + placed.side / 2;
    pen.text(String(layer), EDGE.left - 8, y, { ...style, align: "right" });
  });
}

/**
 * Draw one layer's thumbnails. `viewOf(layer, head)` gives a head, `top(view)` its scale.
 * @param {Pen} pen
 * @param {Stack} stack
 * @param {Placed} placed
 * @param {number} layer
 * @param {{viewOf: (layer: number, head: number) => View, top: (view: View) => number, ratio?: number}} how
 */
export function drawLayer(pen, stack, placed, layer, { viewOf, top, ratio = 1 }) {
  const [, queries, keys] = stack.looks[layer].sizes;
  const most = Math.floor(placed.side * ratio);
  const [rows, columns] = [Math.min(most, queries), Math.min(most, keys)];
  const area = { top: 0, left: 0, bottom: queries, right: keys };
  stack.looks[layer].heads.forEach((_, head) => {
    const view = viewOf(layer, head);
    const bytes = pixels(view.raster(area, rows, columns), top(view));
    const [x, y] = [EDGE.left + head * placed.pitch, EDGE.top + layer * placed.pitch];
    pen.image(bytes, columns, rows, x, y, placed.side, placed.side);
  });
}

/**
 * Frame the chosen head.
 * @param {Pen} pen
 * @param {Placed} placed
 * @param {number} layer
 * @param {number} head
 * @param {Theme} theme
 */
export function drawChosen(pen, placed, layer, head, theme) {
  const [x, y] = [EDGE.left + head * placed.pitch, EDGE.top + layer * placed.pitch];
  pen.rect(x - 2, y - 2, placed.side + 4, placed.side + 4, { stroke: theme.accent, line: 2.5 });
}
