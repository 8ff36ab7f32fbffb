/** Matrix of one head within a page: its weights, or the difference of two heads. */
import { describeSelection } from "../viz/description.js";
import { createElement } from "../viz/dom.js";
import { scaleMaximum } from "../viz/headView.js";
import { TEXTS as VIEWER_TEXTS } from "../viz/i18n.js";
import { hitMatrix, layoutMatrix } from "../viz/layout.js";
import { drawMatrix, drawSelection } from "../viz/matrix.js";
import { createCanvasRenderer, resetCanvas } from "../viz/renderer.js";
import { Scene } from "../viz/scene.js";
import { DEFAULT_THRESHOLD, UNZOOMED } from "../viz/state.js";

/**
 * @import { ColourScale } from "../viz/colourScale.js"
 * @import { HeadView, MatrixData } from "../viz/headView.js"
 * @import { AxisNames, MatrixLayout } from "../viz/layout.js"
 * @import { Selection } from "../viz/state.js"
 * @typedef {{view: HeadView, axisNames: AxisNames, scale?: undefined, maximum?: undefined}
 *   |{view: MatrixData, axisNames: AxisNames, scale: (theme: string) => ColourScale, maximum: number}} MatrixContent
 * Weights of a head, or other values with a colour scale by theme.
 */

const MIN_SHOWN_DIFFERENCE = 0.005; // smaller ones round to 0

/** @type {Object<string, number[]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Create a matrix. `onHover(query, key)` is called as pointer or keyboard select something, with nulls for nothing; the
 * caller answers with `select`, so that several matrices can be linked.
 * @param {import("./app.js").Context} context
 * @param {{title?: string, onHover?: (query: number|null, key: number|null) => void}} [options]
 */
export function createHeadMatrix(context, { title = "", onHover = () => {} } = {}) {
  const canvas = createElement("canvas", { tabIndex: 0, role: "img", className: "main-canvas" });
  const overlay = createElement("canvas", { className: "overlay-canvas", "aria-hidden": "true" });
  const frame = createElement("div", { className: "canvas-frame" }, canvas, overlay);
  const heading = createElement("h3", {}, title);
  const scene = new Scene({ frame, canvas, overlay });
  const viewerTexts = VIEWER_TEXTS[context.language];
  let content = /** @type {MatrixContent|null} */ (null);
  let layout = /** @type {MatrixLayout|null} */ (null);
  let selection = /** @type {Selection} */ ({ query: null, key: null });

  function redraw() {
    if (!content || !frame.clientWidth) return;
    const [size, theme] = [scene.size(), scene.readTheme()];
    const { view, axisNames, scale, maximum = scaleMaximum(view) } = content;
    const measureText = (/** @type {string} */ text) => scene.measureText(text);
    layout = layoutMatrix(size, view, UNZOOMED, measureText, axisNames);
    const threshold = scale ? MIN_SHOWN_DIFFERENCE : DEFAULT_THRESHOLD;
    const style = { maximum, threshold, theme, texts: viewerTexts, axisNames, measureText, pixelRatio: devicePixelRatio };
    drawMatrix(createCanvasRenderer(resetCanvas(canvas, size)), view, layout, scale ? { ...style, scale: scale(theme.name) } : style);
    redrawSelection();
    canvas.setAttribute("aria-label", [heading.textContent, describe()].filter(Boolean).join(": "));
  }

  function redrawSelection() {
    if (!layout || !content) return;
    const renderer = createCanvasRenderer(resetCanvas(overlay, scene.size()));
    drawSelection(renderer, content.view, layout, selection, scene.readTheme());
  }

  /** Describe the selection in words; the caller describes differences. */
  function describe() {
    if (!content || content.scale) return "";
    const isEmpty = selection.query === null && selection.key === null;
    return isEmpty ? context.texts.cellHint : describeSelection(content.view, { ...selection, locked: false }, viewerTexts);
  }

  /** Drop what is out of range. @param {Selection} selection @param {MatrixContent} content @returns {Selection} */
  function clamp({ query, key }, { view }) {
    return {
      query: query !== null && query < view.queries.length ? query : null,
      key: key !== null && key < view.keys.length ? key : null,
    };
  }

  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    if (!layout || !content) return;
    const hit = hitMatrix(layout, content.view, offsetX, offsetY);
    onHover(hit?.query ?? null, hit?.key ?? null);
  });
  canvas.addEventListener("pointerleave", () => onHover(null, null));
  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow || !content) return;
    event.preventDefault();
    const { queries, keys } = content.view;
    /** @param {number|null} index @param {number} by @param {number} count */
    const move = (index, by, count) => Math.min(Math.max((index ?? (by ? -1 : 0)) + by, 0), count - 1);
    onHover(move(selection.query, arrow[0], queries.length), move(selection.key, arrow[1], keys.length));
  });
  const resizeObserver = new ResizeObserver(redraw);
  resizeObserver.observe(frame);
  context.signal.addEventListener("abort", () => resizeObserver.disconnect());
  return {
    element: createElement("div", { className: "head-matrix" }, heading, frame),
    /** @param {MatrixContent} newContent */
    show(newContent, newTitle = title) {
      content = newContent;
      heading.textContent = newTitle;
      selection = clamp(selection, newContent);
      redraw();
    },
    /** @param {number|null} query @param {number|null} key */
    select(query, key) {
      if (!content) return;
      selection = clamp({ query, key }, content);
      redrawSelection();
    },
    describe,
    redraw,
  };
}
