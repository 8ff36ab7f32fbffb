/** Overview of a map group: a thumbnail per head, with a row per layer. */
import { weightsToPixels } from "./colourScale.js";

/**
 * @import { HeadView } from "./headView.js"
 * @import { MapGroup } from "./mapGroups.js"
 * @import { Renderer, Theme } from "./renderer.js"
 * @typedef {{side: number, pitch: number, width: number, height: number}} OverviewLayout
 */

const THUMBNAIL_SIDE = { min: 16, max: 96 }; // pixels
const MIN_SIDE_TO_FIT_HEIGHT = 30; // smaller ones scroll instead
const GAP = 5;
const MARGIN = { left: 26, top: 22 }; // for the indices of layers and heads

/**
 * Fit the thumbnails into a width, and into a height unless they would become too small.
 * @param {number} width
 * @param {MapGroup} group
 * @param {number} [height]
 * @returns {OverviewLayout}
 */
export function layoutOverview(width, group, height = Infinity) {
  const columns = Math.max(...group.maps.map((map) => map.heads.length));
  const fromWidth = (width - MARGIN.left) / columns - GAP;
  const fromHeight = Math.max(MIN_SIDE_TO_FIT_HEIGHT, (height - MARGIN.top) / group.maps.length - GAP);
  const side = Math.floor(Math.min(THUMBNAIL_SIDE.max, Math.max(THUMBNAIL_SIDE.min, Math.min(fromWidth, fromHeight))));
  const pitch = side + GAP;
  return {
    side,
    pitch,
    width: MARGIN.left + columns * pitch,
    height: MARGIN.top + group.maps.length * pitch,
  };
}

/**
 * Return the scroll offset moved as little as needed to show a layer.
 * @param {OverviewLayout} layout
 * @param {number} layer
 * @param {{scroll: number, visible: number}} window offset and height of what is visible
 */
export function revealLayer({ pitch }, layer, { scroll, visible }) {
  const [top, bottom] = [layer ? MARGIN.top + layer * pitch - GAP : 0, MARGIN.top + (layer + 1) * pitch];
  return Math.min(Math.max(scroll, bottom - visible), top);
}

/**
 * Return the head under a pixel, or null.
 * @param {OverviewLayout} layout
 * @param {MapGroup} group
 * @param {number} x
 * @param {number} y
 */
export function hitOverview({ pitch }, group, x, y) {
  const [head, layer] = [Math.floor((x - MARGIN.left) / pitch), Math.floor((y - MARGIN.top) / pitch)];
  const exists = layer >= 0 && head >= 0 && head < (group.maps[layer]?.heads.length ?? 0);
  return exists ? { layer, head } : null;
}

/**
 * Draw the indices of layers and heads.
 * @param {Renderer} renderer
 * @param {MapGroup} group
 * @param {OverviewLayout} layout
 * @param {Theme} theme
 */
export function drawIndices(renderer, group, layout, theme) {
  const style = { colour: theme.muted, size: 11 };
  const columns = Math.max(...group.maps.map((map) => map.heads.length));
  const heads = group.maps.find((map) => map.heads.length === columns)?.heads ?? [];
  const step = Math.ceil(18 / layout.pitch);
  heads.forEach((head, column) => {
    const x = MARGIN.left + column * layout.pitch + layout.side / 2;
    if (column % step === 0) renderer.text(String(head), x, 10, { ...style, align: "center" });
  });
  group.maps.forEach((_, layer) => {
    const y = MARGIN.top + layer * layout.pitch + layout.side / 2;
    renderer.text(String(layer), MARGIN.left - 8, y, { ...style, align: "right" });
  });
}

/**
 * Draw the thumbnails of one layer.
 * @param {Renderer} renderer
 * @param {MapGroup} group
 * @param {OverviewLayout} layout
 * @param {number} layer
 * @param {{viewOf: (layer: number, head: number) => HeadView, maximumOf: (view: HeadView) => number,
 *   pixelRatio?: number}} options
 */
export function drawThumbnails(renderer, group, layout, layer, { viewOf, maximumOf, pixelRatio = 1 }) {
  const [, queries, keys] = group.maps[layer].shape;
  const maxPixels = Math.floor(layout.side * pixelRatio);
  const [rows, columns] = [Math.min(maxPixels, queries), Math.min(maxPixels, keys)];
  const region = { top: 0, left: 0, bottom: queries, right: keys };
  group.maps[layer].heads.forEach((_, head) => {
    const view = viewOf(layer, head);
    const pixels = weightsToPixels(view.rasterize(region, rows, columns), maximumOf(view));
    const [x, y] = [MARGIN.left + head * layout.pitch, MARGIN.top + layer * layout.pitch];
    renderer.image(pixels, columns, rows, x, y, layout.side, layout.side);
  });
}

/**
 * Outline the selected head.
 * @param {Renderer} renderer
 * @param {OverviewLayout} layout
 * @param {number} layer
 * @param {number} head
 * @param {Theme} theme
 */
export function outlineHead(renderer, layout, layer, head, theme) {
  const [x, y] = [MARGIN.left + head * layout.pitch, MARGIN.top + layer * layout.pitch];
  renderer.rect(x - 2, y - 2, layout.side + 4, layout.side + 4, { stroke: theme.accent, lineWidth: 2.5 });
}
