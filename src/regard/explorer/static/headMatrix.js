/** One head as a map within a page: weights, or the difference of two. */
import { element } from "../viz/controls.js";
import { toCanvas } from "../viz/download.js";
import { fresh, Painter } from "../viz/scene.js";
import { canvasPen } from "../viz/renderer.js";
import * as matrix from "../viz/matrix.js";
import { hit, layout } from "../viz/layout.js";
import { TEXTS } from "../viz/i18n.js";
import { sentence } from "../viz/description.js";
import { WHOLE } from "../viz/state.js";

/**
 * @import { Names, Placed, Size } from "../viz/layout.js"
 * @import { Scale } from "../viz/scale.js"
 * @import { Pointer } from "../viz/state.js"
 * @import { Cells, View } from "../viz/headView.js"
 * @typedef {{view: View, names: Names, scale?: undefined, top?: undefined}
 *   |{view: Cells, names: Names, scale: (theme: string) => Scale, top: number}} Shown
 * @typedef {ReturnType<typeof map>} Map
 */

/** @type {Object<string, number[]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * A map; `pointed(query, key)` tells what the reader points at, both null when nothing.
 * @param {import("./app.js").Context} context
 * @param {{title?: string, pointed?: (query: number|null, key: number|null) => void}} [options]
 */
export function map(context, { title = "", pointed = () => {} } = {}) {
  const stage = element("canvas", { tabIndex: 0, role: "img", className: "stage" });
  const overlay = element("canvas", { className: "overlay", "aria-hidden": "true" });
  const frame = element("div", { className: "frame" }, stage, overlay);
  const name = element("h3", {}, title);
  const box = element("div", { className: "map" }, name, frame);
  const painter = new Painter({ frame, stage, overlay }, toCanvas);
  const texts = TEXTS[context.language];
  let shown = /** @type {Shown|null} */ (null);
  let placed = /** @type {Placed|null} */ (null);
  let at = /** @type {Pointer} */ ({ query: null, key: null });

  function paint() {
    if (!shown || !frame.clientWidth) return;
    const [size, theme] = [painter.size(), painter.theme()];
    placed = layout(size, shown.view, WHOLE, (text) => painter.measure(text));
    const pen = canvasPen(fresh(stage, size), toCanvas);
    const { view, names, scale, top = 1 } = shown;
    matrix.draw(pen, view, placed, { top, threshold: 0, theme, texts, names, ratio: devicePixelRatio, ...(scale ? { scale: scale(theme.name) } : {}) });
    paintPointer(size, theme);
    stage.setAttribute("aria-label", `${name.textContent}: ${said()}`);
  }

  function paintPointer(size = painter.size(), theme = painter.theme()) {
    if (placed && shown) matrix.drawPointer(canvasPen(fresh(overlay, size), toCanvas), shown.view, placed, at, theme);
  }

  function said() {
    if (!shown || shown.scale) return "";
    const isIdle = at.query === null && at.key === null;
    return isIdle ? context.texts.pointHint : sentence(shown.view, { ...at, locked: false }, texts);
  }

  /** @param {number|null} query @param {number|null} key */
  function point(query, key) {
    if (!shown) return;
    at = inside({ query, key }, shown);
    paintPointer();
  }

  /** @param {Pointer} pointer @param {Shown} what @returns {Pointer} */
  function inside({ query, key }, what) {
    const { queries, keys } = what.view;
    return { query: query !== null && query < queries.length ? query : null, key: key !== null && key < keys.length ? key : null };
  }

  stage.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    if (!placed || !shown) return;
    const { query, key } = hit(placed, shown.view, offsetX, offsetY) ?? { query: null, key: null };
    pointed(query, key);
  });
  stage.addEventListener("pointerleave", () => pointed(null, null));
  stage.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow || !shown) return;
    event.preventDefault();
    const { queries, keys } = shown.view;
    /** @param {number|null} place @param {number} by @param {number} count */
    const walk = (place, by, count) => Math.min(Math.max((place ?? (by ? -1 : 0)) + by, 0), count - 1);
    pointed(walk(at.query, arrow[0], queries.length), walk(at.key, arrow[1], keys.length));
  });
  const resized = new ResizeObserver(paint);
  resized.observe(frame);
  context.signal.addEventListener("abort", () => resized.disconnect());
  return {
    element: box,
    /** Show a view, with the names of its sides; a `scale` of the theme is for differences. @param {Shown} what */
    show(what, heading = title) {
      shown = what;
      name.textContent = heading;
      at = inside(at, what);
      paint();
    },
    said,
    point,
    repaint: paint,
  };
}
