/** One head as a map within a page: weights, or the difference of two. */
import { element } from "../pictures/controls.js";
import { toCanvas } from "../pictures/download.js";
import { fresh, Painter } from "../pictures/painter.js";
import { canvasPen } from "../pictures/pen.js";
import * as matrix from "../pictures/matrix.js";
import { TEXTS } from "../pictures/language.js";
import { sentence } from "../pictures/sentence.js";
import { WHOLE } from "../pictures/state.js";

/** A map; `pointed(query, key)` tells what the reader points at, both null when nothing. */
export function map(context, { title = "", pointed = () => {} } = {}) {
  const stage = element("canvas", { tabIndex: 0, role: "img", className: "stage" });
  const overlay = element("canvas", { className: "overlay", "aria-hidden": "true" });
  const frame = element("div", { className: "frame" }, stage, overlay);
  const name = element("h3", {}, title);
  const box = element("div", { className: "map" }, name, frame);
  const painter = new Painter({ frame, stage, overlay }, toCanvas);
  const texts = TEXTS[context.language];
  let shown = null;
  let placed = null;
  let at = { query: null, key: null };

  function paint() {
    if (!shown || !frame.clientWidth) return;
    const [size, theme] = [painter.size(), painter.theme()];
    placed = matrix.layout(size, shown.view, WHOLE, (text) => painter.measure(text));
    const pen = canvasPen(fresh(stage, size), toCanvas);
    const { view, names, scale, top = 1 } = shown;
    matrix.draw(pen, view, placed, { top, threshold: 0, theme, texts, names, ratio: devicePixelRatio, ...(scale ? { scale: scale(theme.name) } : {}) });
    paintPointer(size, theme);
    stage.setAttribute("aria-label", `${name.textContent}: ${said()}`);
  }

  function paintPointer(size = painter.size(), theme = painter.theme()) {
    if (placed) matrix.drawPointer(canvasPen(fresh(overlay, size)), shown.view, placed, at, theme);
  }

  function said() {
    if (shown.scale) return "";
    const isIdle = at.query === null && at.key === null;
    return isIdle ? context.texts.pointHint : sentence(shown.view, { ...at, locked: false }, texts);
  }

  function point(query, key) {
    at = inside({ query, key });
    paintPointer();
  }

  function inside({ query, key }) {
    const { queries, keys } = shown.view;
    return { query: query !== null && query < queries.length ? query : null, key: key !== null && key < keys.length ? key : null };
  }

  stage.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    if (!placed) return;
    const { query, key } = matrix.hit(placed, shown.view, offsetX, offsetY) ?? { query: null, key: null };
    pointed(query, key);
  });
  stage.addEventListener("pointerleave", () => pointed(null, null));
  stage.addEventListener("keydown", (event) => {
    const arrow = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!arrow || !shown) return;
    event.preventDefault();
    const { queries, keys } = shown.view;
    const walk = (place, by, count) => Math.min(Math.max((place ?? (by ? -1 : 0)) + by, 0), count - 1);
    pointed(walk(at.query, arrow[0], queries.length), walk(at.key, arrow[1], keys.length));
  });
  const resized = new ResizeObserver(paint);
  resized.observe(frame);
  context.signal.addEventListener("abort", () => resized.disconnect());
  return {
    element: box,
    /** Show a view, with the names of its sides; a `scale` of the theme is for differences. */
    show(what, heading = title) {
      shown = what;
      name.textContent = heading;
      at = inside(at);
      paint();
    },
    said: () => (shown ? said() : ""),
    point: (query, key) => shown && point(query, key),
    repaint: paint,
  };
}
