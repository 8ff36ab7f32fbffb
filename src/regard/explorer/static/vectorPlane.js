/** A plane with vectors as arrows, moved by pointer or keyboard. */
import { element } from "../viz/controls.js";
import { vector as told } from "./format.js";
import { svg } from "./components.js";
import { scale } from "./axis.js";
import { REACH } from "./attentionState.js";

/**
 * @typedef {[number, number]} Pair
 * @typedef {{vector: number[], label: string, pointed: boolean}} Mark
 * @typedef {{words: string[], vectors: number[][], turned?: number[][]|null, reached?: Mark[], pointed?: number|null}} Drawn
 */

const SIDE = 256; // of the drawing, in its own units
const EDGE = 20;
const STEP = 0.05; // of an arrow key; five times as far with Shift
/** @type {Object<string, Pair>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const across = scale([-REACH, REACH], [EDGE, SIDE - EDGE]);
const down = scale([-REACH, REACH], [SIDE - EDGE, EDGE]);
const at = (/** @type {number[]} */ [x, y]) => [across.to(x), down.to(y)];

/**
 * A plane of one kind of vectors. `move(place, to)` is called while one is dragged, `nudge(place, by)` when keys
 * move it, `point(place)` when one is touched; `colour` is a CSS colour.
 * @param {{title: string, colour: string, name: (word: string, numbers: string) => string,
 *   move: (place: number, to: Pair) => void, nudge: (place: number, by: Pair) => void, point: (place: number) => void}} what
 */
export function plane({ title, colour, name, move, nudge, point }) {
  const ghosts = svg("g", { class: "ghosts" });
  const marks = svg("g", { class: "marks" });
  const arrows = svg("g");
  const drawing = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "plane", role: "group", "aria-label": title });
  drawing.append(ground(), ghosts, marks, arrows);
  drawing.style.setProperty("--colour", colour);
  let tips = /** @type {SVGGElement[]} */ ([]);

  /** @param {number} place */
  function tip(place) {
    const made = svg("g", { class: "tip", tabindex: 0, role: "button" },
      svg("line", { x1: across.to(0), y1: down.to(0) }), svg("path", { class: "point" }), svg("circle", { r: 14, class: "grip" }), svg("text"));
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      made.focus({ preventScroll: true });
      made.setPointerCapture(event.pointerId);
    });
    made.addEventListener("pointermove", (event) => {
      if (made.hasPointerCapture(event.pointerId)) move(place, under(event));
    });
    made.addEventListener("pointerenter", () => point(place));
    made.addEventListener("focus", () => point(place));
    made.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      const far = STEP * (event.shiftKey ? 5 : 1);
      nudge(place, [far * arrow[0], far * arrow[1]]);
    });
    return made;
  }

  /** @param {PointerEvent} event @returns {Pair} */
  function under({ clientX, clientY }) {
    const box = drawing.getBoundingClientRect();
    const unit = SIDE / box.width;
    return [across.from((clientX - box.left) * unit), down.from((clientY - box.top) * unit)];
  }

  /** Draw the vectors of words; `turned` are where positions put them, `reached` points they lead to. @param {Drawn} what */
  function draw({ words, vectors, turned = null, reached = [], pointed = null }) {
    if (tips.length !== words.length) {
      tips = words.map((_, place) => tip(place));
      arrows.replaceChildren(...tips);
    }
    tips.forEach((made, place) => put(made, vectors[place], words[place], place === pointed));
    ghosts.replaceChildren(...(turned ?? []).map((vector) => {
      const [x, y] = at(vector);
      return svg("line", { x1: across.to(0), y1: down.to(0), x2: x, y2: y });
    }));
    marks.replaceChildren(...reached.flatMap((mark) => marked(mark)));
  }

  /** @param {SVGGElement} made @param {number[]} vector @param {string} word @param {boolean} isPointed */
  function put(made, vector, word, isPointed) {
    const [line, head, grip, label] = made.children;
    const [x, y] = at(vector);
    line.setAttribute("x2", String(x));
    line.setAttribute("y2", String(y));
    head.setAttribute("d", arrowhead([across.to(0), down.to(0)], [x, y]));
    grip.setAttribute("cx", String(x));
    grip.setAttribute("cy", String(y));
    writeLabel(label, word, x, y);
    made.setAttribute("aria-label", name(word, told(vector)));
    made.classList.toggle("pointed", isPointed);
  }

  return { element: element("figure", { className: "plane-box" }, element("figcaption", {}, title), drawing), draw };
}

/**
 * Write a word beyond the tip, in the arrow's direction, but never off the paper.
 * @param {Element} label
 * @param {string} word
 * @param {number} x
 * @param {number} y
 */
function writeLabel(label, word, x, y) {
  const [right, below] = [x - across.to(0), y - down.to(0)];
  const far = Math.hypot(right, below) || 1;
  const half = [...word].reduce((sum, sign) => sum + (sign > "\u2e7f" ? 6 : 3.2), 0);
  const [outX, outY] = [x + (right / far) * (half + 9), y + (below / far) * 14];
  label.setAttribute("x", String(Math.min(Math.max(outX, half + 2), SIDE - half - 2)));
  label.setAttribute("y", String(Math.min(Math.max(outY + 4, 12), SIDE - 4)));
  label.textContent = word;
}

/** @param {Mark} mark */
function marked({ vector, label, pointed }) {
  const [x, y] = at(vector);
  const ring = svg("circle", { cx: x, cy: y, r: pointed ? 5.5 : 3, class: pointed ? "reached pointed" : "reached" });
  return pointed ? [ring, svg("text", { x, y: y + 18, class: "reached" }, label)] : [ring];
}

/** @param {number[]} from @param {number[]} to */
function arrowhead([x0, y0], [x, y]) {
  const length = Math.hypot(x - x0, y - y0) || 1;
  const [ux, uy] = [(x - x0) / length, (y - y0) / length];
  const size = Math.min(9, length);
  const [bx, by] = [x - size * ux, y - size * uy];
  const half = size * 0.45;
  return `M${x} ${y}L${bx - half * uy} ${by + half * ux}L${bx + half * uy} ${by - half * ux}Z`;
}

function ground() {
  const lines = [];
  for (let n = -REACH; n <= REACH; n++) {
    const kind = n === 0 ? "axis" : "rule";
    lines.push(svg("line", { class: kind, x1: across.to(n), x2: across.to(n), y1: EDGE, y2: SIDE - EDGE }));
    lines.push(svg("line", { class: kind, y1: down.to(n), y2: down.to(n), x1: EDGE, x2: SIDE - EDGE }));
  }
  return svg("g", { "aria-hidden": "true" }, ...lines);
}
