/** The mouse, the pen and the finger: what they point at, click, drag and turn. */
import * as lines from "./links.js";
import * as matrix from "./matrix.js";
import * as overview from "./overview.js";

const STILL = 4; // pixels; a pointer that moved further drags, and does not click

/** Turn what pointers do into actions. */
export function hear({ stage, overview: heads, frame }, painter, { act, state, view, stacks }) {
  let dragged = null;

  const under = ({ offsetX: x, offsetY: y }) => {
    const find = state().mode === "matrix" ? matrix.hit : lines.hit;
    return find(painter.placed, view(), x, y);
  };

  stage.addEventListener("pointerdown", ({ offsetX: x, offsetY: y }) => {
    dragged = { x, y, zoom: painter.placed.zoom, scroll: painter.placed.scroll, far: false };
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
    const found = overview.hit(painter.overview, stacks[state().tab], x, y);
    if (found) act({ type: "pick", ...found });
  });

  function drag({ offsetX: x, offsetY: y }) {
    const [across, down] = [dragged.x - x, dragged.y - y];
    dragged.far ||= Math.hypot(across, down) > STILL;
    if (!dragged.far) return;
    if (state().mode === "matrix") {
      const from = { ...painter.placed, zoom: dragged.zoom };
      act({ type: "zoom", to: matrix.panned(from, across, down) });
    } else {
      act({ type: "scroll", to: dragged.scroll + down });
    }
  }

  function turn(event) {
    const { placed } = painter;
    if (state().mode === "lines") {
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
