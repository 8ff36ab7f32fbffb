/** Plane with vectors as arrows, which are moved by pointer or keyboard. */
import { createElement, createSvgElement } from "../viz/dom.js";
import { MAX_COORDINATE } from "./attentionState.js";
import { linearScale } from "./axis.js";
import { formatVector } from "./format.js";

/**
 * @import { Vector } from "./attentionState.js"
 * @typedef {{vector: number[], label: string, isSelected: boolean}} ContextPoint
 * @typedef {{words: string[], vectors: number[][], encoded?: number[][]|null, contexts?: ContextPoint[],
 *   selected?: number|null}} PlaneContent
 */

const SIDE = 256; // of the SVG's view box
const MARGIN = 20;
const KEY_STEP = 0.05; // per arrow key; with Shift five times as far
/** @type {Object<string, Vector>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const xAxis = linearScale([-MAX_COORDINATE, MAX_COORDINATE], [MARGIN, SIDE - MARGIN]);
const yAxis = linearScale([-MAX_COORDINATE, MAX_COORDINATE], [SIDE - MARGIN, MARGIN]);
const toPixels = (/** @type {number[]} */ [x, y]) => [xAxis.toPixel(x), yAxis.toPixel(y)];
const ORIGIN = toPixels([0, 0]);

/**
 * Create a plane. `onMove` gets the new vector while one is dragged, `onNudge` the change made by a key, `onSelect` the
 * index of a vector that is hovered or focused. `labelOf` names a vector for screen readers; `colour` is a CSS colour.
 * @param {{title: string, colour: string, labelOf: (word: string, vector: string) => string,
 *   onMove: (index: number, to: Vector) => void, onNudge: (index: number, by: Vector) => void,
 *   onSelect: (index: number) => void}} options
 */
export function createVectorPlane({ title, colour, labelOf, onMove, onNudge, onSelect }) {
  const encodedGroup = createSvgElement("g", { class: "encoded-vectors" });
  const contextGroup = createSvgElement("g", { class: "contexts" });
  const vectorGroup = createSvgElement("g");
  const svg = createSvgElement("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "vector-plane", role: "group", "aria-label": title });
  svg.append(createGrid(), encodedGroup, contextGroup, vectorGroup);
  svg.style.setProperty("--colour", colour);
  let vectorElements = /** @type {SVGGElement[]} */ ([]);

  /** @param {number} index */
  function createVector(index) {
    const element = createSvgElement("g", { class: "vector", tabindex: 0, role: "button" },
      createSvgElement("line", { x1: ORIGIN[0], y1: ORIGIN[1] }), createSvgElement("path", { class: "arrowhead" }),
      createSvgElement("circle", { r: 14, class: "handle" }), createSvgElement("text"));
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      if (element.hasPointerCapture(event.pointerId)) onMove(index, vectorAt(event));
    });
    element.addEventListener("pointerenter", () => onSelect(index));
    element.addEventListener("focus", () => onSelect(index));
    element.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      const step = KEY_STEP * (event.shiftKey ? 5 : 1);
      onNudge(index, [step * arrow[0], step * arrow[1]]);
    });
    return element;
  }

  /** @param {PointerEvent} event @returns {Vector} */
  function vectorAt({ clientX, clientY }) {
    const box = svg.getBoundingClientRect();
    const scale = SIDE / box.width;
    return [xAxis.toValue((clientX - box.left) * scale), yAxis.toValue((clientY - box.top) * scale)];
  }

  /** Draw the vectors of words; `encoded` are the same after positional encoding. @param {PlaneContent} content */
  function draw({ words, vectors, encoded = null, contexts = [], selected = null }) {
    if (vectorElements.length !== words.length) {
      vectorElements = words.map((_, index) => createVector(index));
      vectorGroup.replaceChildren(...vectorElements);
    }
    vectorElements.forEach((element, n) => updateVector(element, vectors[n], words[n], n === selected));
    encodedGroup.replaceChildren(...(encoded ?? []).map((vector) => {
      const [x2, y2] = toPixels(vector);
      return createSvgElement("line", { x1: ORIGIN[0], y1: ORIGIN[1], x2, y2 });
    }));
    contextGroup.replaceChildren(...contexts.flatMap(createContext));
  }

  /** @param {SVGGElement} element @param {number[]} vector @param {string} word @param {boolean} isSelected */
  function updateVector(element, vector, word, isSelected) {
    const [line, arrowhead, handle, label] = element.children;
    const [x, y] = toPixels(vector);
    line.setAttribute("x2", String(x));
    line.setAttribute("y2", String(y));
    arrowhead.setAttribute("d", arrowheadPath(ORIGIN, [x, y]));
    handle.setAttribute("cx", String(x));
    handle.setAttribute("cy", String(y));
    updateLabel(label, word, x, y);
    element.setAttribute("aria-label", labelOf(word, formatVector(vector)));
    element.classList.toggle("selected", isSelected);
  }

  const caption = createElement("figcaption", {}, title);
  return { element: createElement("figure", { className: "vector-plane-figure" }, caption, svg), draw };
}

/**
 * Place a word beyond the tip of its arrow, but inside the plane.
 * @param {Element} label
 * @param {string} word
 * @param {number} x
 * @param {number} y
 */
function updateLabel(label, word, x, y) {
  const [dx, dy] = [x - ORIGIN[0], y - ORIGIN[1]];
  const length = Math.hypot(dx, dy) || 1;
  const halfWidth = [...word].reduce((sum, character) => sum + (character > "\u2e7f" ? 6 : 3.2), 0); // CJK is wider
  const [labelX, labelY] = [x + (dx / length) * (halfWidth + 9), y + (dy / length) * 14];
  label.setAttribute("x", String(Math.min(Math.max(labelX, halfWidth + 2), SIDE - halfWidth - 2)));
  label.setAttribute("y", String(Math.min(Math.max(labelY + 4, 12), SIDE - 4)));
  label.textContent = word;
}

/** @param {ContextPoint} point */
function createContext({ vector, label, isSelected }) {
  const [x, y] = toPixels(vector);
  const circle = createSvgElement("circle", { cx: x, cy: y, r: isSelected ? 5.5 : 3, class: isSelected ? "selected" : "" });
  return isSelected ? [circle, createSvgElement("text", { x, y: y + 18 }, label)] : [circle];
}

/** @param {number[]} from @param {number[]} to */
function arrowheadPath([x0, y0], [x, y]) {
  const length = Math.hypot(x - x0, y - y0) || 1;
  const [ux, uy] = [(x - x0) / length, (y - y0) / length];
  const size = Math.min(9, length);
  const [baseX, baseY] = [x - size * ux, y - size * uy];
  const half = size * 0.45;
  return `M${x} ${y}L${baseX - half * uy} ${baseY + half * ux}L${baseX + half * uy} ${baseY - half * ux}Z`;
}

function createGrid() {
  const lines = [];
  for (let n = -MAX_COORDINATE; n <= MAX_COORDINATE; n++) {
    const className = n === 0 ? "axis" : "grid-line";
    const [x, y] = toPixels([n, n]);
    lines.push(createSvgElement("line", { class: className, x1: x, x2: x, y1: MARGIN, y2: SIDE - MARGIN }));
    lines.push(createSvgElement("line", { class: className, y1: y, y2: y, x1: MARGIN, x2: SIDE - MARGIN }));
  }
  return createSvgElement("g", { "aria-hidden": "true" }, ...lines);
}
