/** The mouse, the pen and the finger: what they point at, click, drag and turn. */
import * as lines from "./lines.js";
import * as overview from "./overview.js";
import * as matrix from "./layout.js";

/**
 * @import { Painter, Placed } from "./scene.js"
 * @import { Stack } from "./mapGroups.js"
 * @import { State, Wish } from "./state.js"
 * @import { View } from "./headView.js"
 * @typedef {{offsetX: number, offsetY: number}} At
 */

const STILL = 4; // pixels; a pointer that moved further drags, and does not click

/**
 * Turn what pointers do into actions.
 * @param {{stage: HTMLCanvasElement, overview: HTMLCanvasElement, frame: HTMLElement}} parts
 * @param {Painter} painter
 * @param {{act: (wish: Wish) => void, state: () => State, view: () => View, stacks: Stack[]}} page
 */
export function hear({ stage, overview: heads, frame }, painter, { act, state, view, stacks }) {
  let dragged = /** @type {{x: number, y: number, from: Placed|null, far: boolean}|null} */ (null);

  const under = (/** @type {At} */ { offsetX: x, offsetY: y }) => {
    const { placed } = painter;
    if (!placed) return null;
    return placed.mode === "matrix" ? matrix.hit(placed, view(), x, y) : lines.hit(placed, view(), x, y);
  };

  stage.addEventListener("pointerdown", ({ offsetX: x, offsetY: y }) => {
    dragged = { x, y, from: painter.placed, far: false };
  });
  stage.addEventListener("pointermove", (event) => {
    if (dragged && event.buttons) drag(event);
    else act({ type: "point", ...(under(event) ?? { query: null, key: null }) });
  });
  stage.addEventListener("pointerleave", () => act({ type: "point", query: null, key: null }));
  stage.addEventListener("click", (event) => {
    const isDrag = dragged?.far;
    dragged = null;
    if (isDrag) return;
    const found = under(event);
    act(found ? { type: "lock", ...found } : { type: "clear" });
  });
  stage.addEventListener("dblclick", () => act({ type: "nearer", by: 0 }));
  frame.addEventListener("wheel", turn, { passive: false });
  heads.addEventListener("click", ({ offsetX: x, offsetY: y }) => {
    const found = painter.overview && overview.hit(painter.overview, stacks[state().tab], x, y);
    if (found) act({ type: "pick", ...found });
  });

  /** @param {At} at */
  function drag({ offsetX: x, offsetY: y }) {
    const { placed } = painter;
    if (!dragged?.from || !placed) return;
    const { from } = dragged;
    const [across, down] = [dragged.x - x, dragged.y - y];
    dragged.far ||= Math.hypot(across, down) > STILL;
    if (!dragged.far) return;
    if (placed.mode === "matrix" && from.mode === "matrix") {
      act({ type: "zoom", to: matrix.panned({ cell: placed.cell, zoom: from.zoom }, across, down) });
    } else if (from.mode === "lines") {
      act({ type: "scroll", to: from.scroll + down });
    }
  }

  /** @param {WheelEvent} event */
  function turn(event) {
    const { placed } = painter;
    if (!placed) return;
    if (placed.mode === "lines") {
      act({ type: "scroll", to: placed.scroll + event.deltaY });
    } else if (event.shiftKey) {
      act({ type: "zoom", to: matrix.panned(placed, event.deltaX || event.deltaY, 0) });
    } else {
      const nearer = event.deltaY < 0;
      if (!nearer && placed.zoom.scale <= 1) return; // the page around may scroll
      act({ type: "nearer", by: nearer ? 1.25 : 0.8, at: { x: event.offsetX, y: event.offsetY } });
    }
    event.preventDefault();
  }
}
