/** A chart of curves over steps, read off with pointer or keyboard. */
import { element } from "../viz/controls.js";
import { svg } from "./components.js";
import { path, range, scale, tickText, ticks } from "./axis.js";
import { nearest } from "./logSeries.js";

/**
 * @import { Axis } from "./axis.js"
 * @import { Chart, Curve } from "./logSeries.js"
 * @import { Texts } from "./i18n.js"
 */

const SIZE = { width: innerWidth < 600 ? 330 : 560, height: innerWidth < 600 ? 190 : 250 };
const EDGE = { left: 48, right: 14, top: 12, bottom: 28 };
/** @type {Object<string, number>} */
const WAYS = { ArrowLeft: -1, ArrowRight: 1 };
const COLOURS = ["var(--accent)", "var(--pointer)", "var(--value)"];

/** A chart that is drawn anew as its curves grow. @param {Texts["training"]} texts */
export function chart(texts) {
  const name = element("h3");
  const legend = element("p", { className: "chart-legend" });
  const drawing = svg("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, class: "chart", role: "img", tabindex: 0 });
  const box = element("figure", { className: "panel chart-box" }, element("figcaption", { className: "chart-head" }, name, legend), drawing);
  let shown = /** @type {Chart|null} */ (null);
  let read = /** @type {number|null} */ (null); // the step that is read off

  /** @param {Chart} what */
  function draw(what) {
    shown = what;
    name.textContent = texts.charts[what.name] ?? what.name;
    const points = what.curves.flatMap((curve) => curve.points);
    const across = scale(range(points.map(([step]) => step), 0.02), [EDGE.left, SIZE.width - EDGE.right]);
    const up = scale(range(points.map(([, value]) => value)), [SIZE.height - EDGE.bottom, EDGE.top]);
    drawing.replaceChildren(ground(across, up, texts), ...what.curves.flatMap((curve, n) => drawn(curve, n, across, up)));
    if (read !== null) drawing.append(svg("line", { class: "reading", x1: across.to(read), x2: across.to(read), y1: EDGE.top, y2: SIZE.height - EDGE.bottom }));
    legend.replaceChildren(...what.curves.map((curve, n) => entry(curve, n)));
    drawing.setAttribute("aria-label", `${name.textContent}: ${legend.textContent}`);
    drawing.onpointermove = ({ clientX }) => {
      const area = drawing.getBoundingClientRect();
      look(across.from(((clientX - area.left) * SIZE.width) / area.width));
    };
  }

  /** @param {Curve} curve @param {number} n */
  function entry(curve, n) {
    const [step, value] = read === null ? curve.points[curve.points.length - 1] : nearest(curve, read);
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = COLOURS[n % COLOURS.length];
    const label = texts.figures[curve.name] ?? curve.name;
    return element("span", {}, swatch, `${label} ${Number(value.toPrecision(4))}`, element("small", {}, ` ${texts.atStep(step)}`));
  }

  /** Read the curves off at the step that is nearest. @param {number} step */
  function look(step) {
    if (!shown) return;
    const to = nearest({ name: "", points: shown.curves.flatMap((curve) => curve.points) }, step)[0];
    if (to === read) return;
    read = to;
    draw(shown);
  }

  drawing.addEventListener("pointerleave", () => {
    read = null;
    if (shown) draw(shown);
  });
  drawing.addEventListener("keydown", (event) => {
    const way = WAYS[event.key];
    if (!way || !shown) return;
    event.preventDefault();
    const steps = [...new Set(shown.curves.flatMap((curve) => curve.points.map(([step]) => step)))].sort((a, b) => a - b);
    const place = read === null ? steps.length - 1 : steps.indexOf(read) + way;
    look(steps[Math.min(Math.max(place, 0), steps.length - 1)]);
  });
  return { element: box, draw };
}

/** @param {Curve} curve @param {number} n @param {Axis} across @param {Axis} up */
function drawn({ points }, n, across, up) {
  const colour = COLOURS[n % COLOURS.length];
  const line = svg("path", { class: "curve", d: path(points.map(([step, value]) => [across.to(step), up.to(value)])) });
  line.style.stroke = colour;
  if (points.length > 40) return [line];
  const dots = points.map(([step, value]) => svg("circle", { cx: across.to(step), cy: up.to(value), r: 3 }));
  for (const dot of dots) dot.style.fill = colour;
  return [line, ...dots];
}

/** @param {Axis} across @param {Axis} up @param {Texts["training"]} texts */
function ground(across, up, texts) {
  const columns = ticks(across.least, across.most, 5);
  const rows = ticks(up.least, up.most, 4);
  const bottom = SIZE.height - EDGE.bottom;
  return svg("g", { class: "ground" },
    ...rows.flatMap((value) => [
      svg("line", { x1: EDGE.left, x2: SIZE.width - EDGE.right, y1: up.to(value), y2: up.to(value) }),
      svg("text", { x: EDGE.left - 8, y: up.to(value) + 4, "text-anchor": "end" }, tickText(value, rows)),
    ]),
    ...columns.map((step) => svg("text", { x: across.to(step), y: bottom + 18, "text-anchor": "middle" }, tickText(step, columns))),
    svg("text", { x: EDGE.left - 8, y: bottom + 18, "text-anchor": "end" }, texts.step));
}
