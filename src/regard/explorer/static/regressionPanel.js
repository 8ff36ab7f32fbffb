/** Nadaraya-Watson: attention whose score is nearness, drawn as a curve through draggable points. */
import { element } from "../viz/controls.js";
import { isStopped } from "./api.js";
import { newest } from "./debounce.js";
import { plain } from "./format.js";
import { chooser, field, sentenceOf, slider, statusLine, svg } from "./components.js";
import { path, scale, tickText, ticks } from "./axis.js";
import { ACROSS, added, BANDWIDTHS, curve, fromValues, moved, removed, request, toValues, UP, within } from "./regressionState.js";

/**
 * @import { Axis } from "./axis.js"
 * @import { Plot } from "./regressionState.js"
 */

const HEIGHT = 330; // of the drawing, in its own units; it is as wide as the window
const BARS = 84;
const EDGE = { left: 40, right: 12, top: 10, bottom: 26 };
/** @type {Object<string, number[]>} */
const ARROWS = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };

const up = scale(UP, [HEIGHT - EDGE.bottom, EDGE.top]);
const floor = HEIGHT + BARS;

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {{element: HTMLElement}} */
export function regression(context, values) {
  const { known, texts } = context;
  const names = texts.regression;
  const width = Math.min(Math.max(innerWidth - 80, 280), 1220);
  const across = scale(ACROSS, [EDGE.left, width - EDGE.right]);
  let plot = fromValues(values, known.playground.kernels);
  let framed = false;
  let tips = /** @type {SVGCircleElement[]} */ ([]);
  const status = statusLine();
  const line = svg("path", { class: "curve" });
  const reading = svg("line", { class: "reading", y1: EDGE.top, y2: floor });
  const height = svg("circle", { class: "height", r: 6 });
  const bars = svg("g", { class: "bars" });
  const points = svg("g");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${floor + 18}`, class: "regression", role: "group", "aria-label": names.title });
  drawing.append(ground(names, across, width), line, reading, height, bars, points);
  const said = element("p", { className: "formula-line", role: "status" });

  const attend = newest(async (/** @type {Plot} */ asked) => {
    try {
      draw(asked, curve(await context.ask("/api/attend", { body: request(asked), signal: context.signal })));
      status.say("");
    } catch (error) {
      if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
    }
  });

  /** @param {Plot} next */
  function set(next) {
    plot = next;
    if (framed) return;
    framed = true;
    requestAnimationFrame(() => {
      framed = false;
      context.note(toValues(plot));
      place();
      attend(plot);
    });
  }

  /** @param {MouseEvent} event */
  function under({ clientX, clientY }) {
    const box = drawing.getBoundingClientRect();
    const unit = width / box.width;
    return within([across.from((clientX - box.left) * unit), up.from((clientY - box.top) * unit)]);
  }

  /** @param {number} n */
  function tip(n) {
    const made = svg("circle", { r: 8, class: "sample", tabindex: 0, role: "button" });
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      made.focus({ preventScroll: true });
      made.setPointerCapture(event.pointerId);
    });
    made.addEventListener("pointermove", (event) => {
      if (!made.hasPointerCapture(event.pointerId)) return;
      event.stopPropagation();
      set(moved({ ...plot, x: under(event)[0] }, n, under(event)));
    });
    made.addEventListener("dblclick", (event) => {
      event.stopPropagation();
      set(removed(plot, n));
    });
    made.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      const [x, y] = plot.points[n];
      if (arrow) set(moved(plot, n, [x + arrow[0], y + arrow[1]]));
      else if (event.key === "Delete" || event.key === "Backspace") set(removed(plot, n));
      else if (event.key === "+" || event.key === "Insert") set(added(plot, [x + 0.3, y]));
      else return;
      event.preventDefault();
    });
    return made;
  }

  /** Put the points where they are, at once. */
  function place() {
    if (tips.length !== plot.points.length) {
      tips = plot.points.map((_, n) => tip(n));
      points.replaceChildren(...tips);
    }
    plot.points.forEach(([x, y], n) => {
      tips[n].setAttribute("cx", String(across.to(x)));
      tips[n].setAttribute("cy", String(up.to(y)));
      tips[n].setAttribute("aria-label", names.pointAt(plain(x), plain(y)));
    });
    for (const end of ["x1", "x2"]) reading.setAttribute(end, String(across.to(plot.x)));
  }

  /** @param {Plot} asked @param {ReturnType<typeof curve>} found */
  function draw(asked, { line: through, weights, height: y }) {
    line.setAttribute("d", path(through.map((point) => point && [across.to(point[0]), up.to(point[1])])));
    height.setAttribute("visibility", y === null ? "hidden" : "visible");
    height.setAttribute("cx", String(across.to(asked.x)));
    height.setAttribute("cy", String(up.to(y ?? 0)));
    const most = Math.max(...weights, 1e-9);
    bars.replaceChildren(...weights.flatMap((weight, n) => {
      const tall = (weight / most) * (BARS - 26);
      const x = across.to(asked.points[n][0]);
      const bar = svg("rect", { x: x - 6, y: floor - tall, width: 12, height: tall });
      const label = weight >= 0.005 ? [svg("text", { x, y: floor - tall - 4 }, plain(weight))] : [];
      return [bar, ...label];
    }));
    tips.forEach((made, n) => made.style.setProperty("--weight", String((weights[n] ?? 0) / most)));
    said.textContent = y === null ? names.nothingNear(plain(asked.x)) : `${names.at} x = ${plain(asked.x)}:  ŷ = ${sum(asked, weights)} = ${plain(y)}`;
  }

  drawing.addEventListener("pointermove", (event) => {
    if (event.buttons && event.target instanceof Element && event.target.classList.contains("sample")) return;
    set({ ...plot, x: under(event)[0] });
  });
  drawing.addEventListener("dblclick", (event) => set(added(plot, under(event))));
  const widen = (/** @type {number} */ bandwidth) => set({ ...plot, bandwidth });
  const [least, most] = BANDWIDTHS;
  const bandwidth = slider(names.bandwidth, { least, most, step: 0.05, value: plot.bandwidth, write: plain, oninput: widen });
  const add = element("button", { type: "button", className: "quiet", onclick: () => set(added(plot, [plot.x, 0])) }, names.add);
  const reset = element("button", { type: "button", className: "quiet", onclick: () => {
    context.note({ points: "", kernel: "", b: "", x: "" });
    box.replaceWith(regression(context, {}).element);
  } }, texts.playground.reset);
  const controls = element("div", { className: "panel controls" },
    field(names.kernel, chooser(known.playground.kernels, plot.kernel, (kernel) => set({ ...plot, kernel }), texts.playground.scoreNames)),
    bandwidth, add, reset);
  const box = element("div", { className: "attention" },
    controls, status.element,
    element("div", { className: "panel" }, drawing), said, element("p", { className: "hint" }, names.help));
  place();
  attend(plot);
  return { element: box };
}

/** @param {Plot} plot @param {number[]} weights */
function sum({ points }, weights) {
  const strong = weights.map((weight, n) => ({ weight, y: points[n][1] })).filter(({ weight }) => weight >= 0.005);
  const shown = strong.sort((a, b) => b.weight - a.weight).slice(0, 4);
  const parts = shown.map(({ weight, y }) => `${plain(weight)}·${y < 0 ? `(${plain(y)})` : plain(y)}`);
  return parts.join(" + ") + (strong.length > shown.length ? " + …" : "");
}

/** @param {{weights: string}} names @param {Axis} across @param {number} width */
function ground(names, across, width) {
  const columns = ticks(...ACROSS, 10);
  const rows = ticks(...UP, 4);
  const bottom = HEIGHT - EDGE.bottom;
  return svg("g", { class: "ground", "aria-hidden": "true" },
    ...columns.flatMap((x) => [
      svg("line", { x1: across.to(x), x2: across.to(x), y1: EDGE.top, y2: bottom }),
      svg("text", { x: across.to(x), y: bottom + 16, "text-anchor": "middle" }, tickText(x, columns)),
    ]),
    ...rows.flatMap((y) => [
      svg("line", { x1: EDGE.left, x2: width - EDGE.right, y1: up.to(y), y2: up.to(y) }),
      svg("text", { x: EDGE.left - 8, y: up.to(y) + 4, "text-anchor": "end" }, tickText(y, rows)),
    ]),
    svg("line", { class: "floor", x1: EDGE.left, x2: width - EDGE.right, y1: floor, y2: floor }),
    svg("text", { x: EDGE.left, y: floor + 14 }, names.weights));
}
