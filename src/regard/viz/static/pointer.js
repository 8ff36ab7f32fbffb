/** Pointer input of the viewer: hovering, clicking, dragging and the wheel. */
import { hitImage } from "./imageOverlay.js";
import { hitLines, hitMatrix, pan } from "./layout.js";
import { hitOverview } from "./overview.js";

/**
 * @import { HeadView } from "./headView.js"
 * @import { ViewLayout } from "./layout.js"
 * @import { MapGroup } from "./mapGroups.js"
 * @import { Scene } from "./scene.js"
 * @import { Command, State } from "./state.js"
 * @typedef {{offsetX: number, offsetY: number}} Offset
 */

const DRAG_DISTANCE = 4; // pixels; a shorter movement is a click
const WHEEL_ZOOM_FACTOR = 1.25;

/**
 * Translate pointer events to commands.
 * @param {{canvas: HTMLCanvasElement, overview: HTMLCanvasElement, frame: HTMLElement}} elements
 * @param {Scene} scene
 * @param {{dispatch: (command: Command) => void, getState: () => State, getView: () => HeadView, groups: MapGroup[]}} viewer
 */
export function listenToPointer({ canvas, overview, frame }, scene, { dispatch, getState, getView, groups }) {
  let drag = /** @type {{x: number, y: number, layout: ViewLayout|null, hasMoved: boolean}|null} */ (null);

  const hit = (/** @type {Offset} */ { offsetX: x, offsetY: y }) => {
    const { layout } = scene;
    if (!layout) return null;
    if (layout.mode === "image") return hitImage(layout, getView(), x, y, getState());
    return layout.mode === "matrix" ? hitMatrix(layout, getView(), x, y) : hitLines(layout, getView(), x, y);
  };

  canvas.addEventListener("pointerdown", ({ offsetX: x, offsetY: y }) => {
    drag = { x, y, layout: scene.layout, hasMoved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) dragTo(event);
    else dispatch({ type: "hover", ...(hit(event) ?? { query: null, key: null }) });
  });
  canvas.addEventListener("pointerleave", () => dispatch({ type: "hover", query: null, key: null }));
  canvas.addEventListener("click", (event) => {
    const endsDrag = drag?.hasMoved;
    drag = null;
    if (endsDrag) return;
    const selection = hit(event);
    dispatch(selection ? { type: "lock", ...selection } : { type: "clear" });
  });
  canvas.addEventListener("dblclick", () => dispatch({ type: "resetZoom" }));
  frame.addEventListener("wheel", zoomOrScroll, { passive: false });
  overview.addEventListener("click", ({ offsetX: x, offsetY: y }) => {
    const head = scene.overviewLayout && hitOverview(scene.overviewLayout, groups[getState().tab], x, y);
    if (head) dispatch({ type: "selectHead", ...head });
  });

  /** @param {Offset} offset */
  function dragTo({ offsetX: x, offsetY: y }) {
    const { layout } = scene;
    if (!drag?.layout || !layout) return;
    const start = drag.layout;
    const [dx, dy] = [drag.x - x, drag.y - y];
    drag.hasMoved ||= Math.hypot(dx, dy) > DRAG_DISTANCE;
    if (!drag.hasMoved) return;
    if (layout.mode === "matrix" && start.mode === "matrix") {
      dispatch({ type: "zoom", to: pan({ cell: layout.cell, zoom: start.zoom }, dx, dy) });
    } else if (start.mode === "lines") {
      dispatch({ type: "scroll", to: start.scroll + dy });
    }
  }

  /** @param {WheelEvent} event */
  function zoomOrScroll(event) {
    const { layout } = scene;
    if (!layout || layout.mode === "image") return; // the surrounding page scrolls
    if (layout.mode === "lines") {
      dispatch({ type: "scroll", to: layout.scroll + event.deltaY });
    } else if (event.shiftKey) {
      dispatch({ type: "zoom", to: pan(layout, event.deltaX || event.deltaY, 0) });
    } else {
      const zoomsIn = event.deltaY < 0;
      if (!zoomsIn && layout.zoom.scale <= 1) return; // let the surrounding page scroll
      const factor = zoomsIn ? WHEEL_ZOOM_FACTOR : 1 / WHEEL_ZOOM_FACTOR;
      dispatch({ type: "zoomBy", factor, at: { x: event.offsetX, y: event.offsetY } });
    }
    event.preventDefault();
  }
}
