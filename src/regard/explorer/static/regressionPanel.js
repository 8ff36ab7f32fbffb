/** Kernel regression playground (Nadaraya-Watson): the prediction through points that can be dragged. */
import { createElement, createSvgElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { formatTick, linearScale, linePath, ticks } from "./axis.js";
import { createField, createSelect, createSlider, createStatus, errorMessage } from "./components.js";
import { latestOnly } from "./debounce.js";
import { formatFactor, formatNumber } from "./format.js";
import { addPoint, BANDWIDTH_RANGE, clampPoint, fromParams, movePoint, parsePrediction, removePoint, toParams, toRequest, X_RANGE, Y_RANGE } from "./regressionState.js";

/**
 * @import { Axis } from "./axis.js"
 * @import { RegressionState } from "./regressionState.js"
 */

const PLOT_HEIGHT = 330; // in units of the SVG's view box, which is as wide as the window
const BAR_HEIGHT = 84;
const BOTTOM = PLOT_HEIGHT + BAR_HEIGHT;
const MARGIN = { left: 40, right: 12, top: 10, bottom: 26 };
const MIN_SHOWN_WEIGHT = 0.005;
const MAX_SHOWN_TERMS = 4;
/** @type {Object<string, number[]>} */
const ARROWS = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };

const yAxis = linearScale(Y_RANGE, [PLOT_HEIGHT - MARGIN.bottom, MARGIN.top]);

/** @type {import("./app.js").CreatePage} */
export function createRegressionPanel(context, params) {
  const { server } = context;
  const texts = context.texts.regression;
  const playgroundTexts = context.texts.playground;
  const width = Math.min(Math.max(innerWidth - 80, 280), 1220);
  const xAxis = linearScale(X_RANGE, [MARGIN.left, width - MARGIN.right]);
  let state = fromParams(params, server.playground.kernels);
  let isScheduled = false;
  let pointElements = /** @type {SVGCircleElement[]} */ ([]);
  const status = createStatus();
  const curve = createSvgElement("path", { class: "curve" });
  const cursor = createSvgElement("path", { class: "cursor" });
  const predictedPoint = createSvgElement("circle", { class: "prediction", r: 6 });
  const bars = createSvgElement("g", { class: "weight-bars" });
  const pointGroup = createSvgElement("g");
  const svg = createSvgElement("svg", { viewBox: `0 0 ${width} ${BOTTOM + 18}`, class: "regression-plot", role: "group", "aria-label": texts.title });
  svg.append(createGrid(texts.weights, xAxis, width), curve, cursor, predictedPoint, bars, pointGroup);
  const prediction = createElement("p", { className: "prediction-text", role: "status" });

  const attend = latestOnly(async (/** @type {RegressionState} */ requested) => {
    try {
      const response = await context.request("/api/attend", { body: toRequest(requested), signal: context.signal });
      drawPrediction(requested, parsePrediction(response));
      status.show("");
    } catch (error) {
      if (!isAbortError(error)) status.show(errorMessage(error, context.texts), true);
    }
  });

  /** Update the state; drawing and the request wait for the next frame. @param {RegressionState} newState */
  function setState(newState) {
    state = newState;
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      context.updateParams(toParams(state));
      drawPoints();
      attend(state);
    });
  }

  /** @param {MouseEvent} event */
  function pointAt({ clientX, clientY }) {
    const box = svg.getBoundingClientRect();
    const scale = width / box.width;
    return clampPoint([xAxis.toValue((clientX - box.left) * scale), yAxis.toValue((clientY - box.top) * scale)]);
  }

  /** @param {number} index */
  function createPoint(index) {
    const element = createSvgElement("circle", { r: 8, class: "data-point", tabindex: 0, role: "button" });
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      event.stopPropagation();
      setState(movePoint({ ...state, x: pointAt(event)[0] }, index, pointAt(event)));
    });
    element.addEventListener("dblclick", (event) => {
      event.stopPropagation();
      setState(removePoint(state, index));
    });
    element.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      const [x, y] = state.points[index];
      if (arrow) setState(movePoint(state, index, [x + arrow[0], y + arrow[1]]));
      else if (event.key === "Delete" || event.key === "Backspace") setState(removePoint(state, index));
      else if (event.key === "+" || event.key === "Insert") setState(addPoint(state, [x + 0.3, y]));
      else return;
      event.preventDefault();
    });
    return element;
  }

  function drawPoints() {
    if (pointElements.length !== state.points.length) {
      pointElements = state.points.map((_, n) => createPoint(n));
      pointGroup.replaceChildren(...pointElements);
    }
    state.points.forEach(([x, y], n) => {
      pointElements[n].setAttribute("cx", String(xAxis.toPixel(x)));
      pointElements[n].setAttribute("cy", String(yAxis.toPixel(y)));
      pointElements[n].setAttribute("aria-label", texts.pointLabel(formatNumber(x), formatNumber(y)));
    });
    const bottom = PLOT_HEIGHT - MARGIN.bottom;
    const x = xAxis.toPixel(state.x);
    cursor.setAttribute("d", `M ${x} ${MARGIN.top} V ${bottom} M ${x} ${bottom + 22} V ${BOTTOM}`); // not over the axis labels
  }

  /** @param {RegressionState} requested @param {ReturnType<typeof parsePrediction>} predicted */
  function drawPrediction({ points, x }, { curve: curvePoints, weights, y }) {
    curve.setAttribute("d", linePath(curvePoints.map((point) => point && [xAxis.toPixel(point[0]), yAxis.toPixel(point[1])])));
    predictedPoint.setAttribute("visibility", y === null ? "hidden" : "visible");
    predictedPoint.setAttribute("cx", String(xAxis.toPixel(x)));
    predictedPoint.setAttribute("cy", String(yAxis.toPixel(y ?? 0)));
    const maximum = Math.max(...weights, 1e-9);
    bars.replaceChildren(...weights.flatMap((weight, n) => createBar(xAxis.toPixel(points[n][0]), weight, maximum)));
    pointElements.forEach((element, n) => element.style.setProperty("--weight", String((weights[n] ?? 0) / maximum)));
    prediction.textContent = y === null
      ? texts.noPrediction(formatNumber(x))
      : texts.prediction(formatNumber(x), formatWeightedSum(points, weights), formatNumber(y));
  }

  svg.addEventListener("pointermove", (event) => {
    if (event.buttons && event.target instanceof Element && event.target.classList.contains("data-point")) return;
    setState({ ...state, x: pointAt(event)[0] });
  });
  svg.addEventListener("dblclick", (event) => setState(addPoint(state, pointAt(event))));
  const [min, max] = BANDWIDTH_RANGE;
  const setBandwidth = (/** @type {number} */ bandwidth) => setState({ ...state, bandwidth });
  const bandwidth = createSlider(texts.bandwidth, { min, max, step: 0.05, value: state.bandwidth, format: formatNumber, onInput: setBandwidth });
  const addButton = createElement("button", { type: "button", className: "button", onclick: () => setState(addPoint(state, [state.x, 0])) }, texts.addPoint);
  const resetButton = createElement("button", { type: "button", className: "button", onclick: () => {
    context.updateParams(Object.fromEntries(Object.keys(toParams(state)).map((name) => [name, ""])));
    element.replaceWith(createRegressionPanel(context, {}).element);
  } }, playgroundTexts.reset);
  const setKernel = (/** @type {string} */ kernel) => setState({ ...state, kernel });
  const kernelSelect = createSelect(server.playground.kernels, state.kernel, setKernel, playgroundTexts.scoreNames);
  const controls = createElement("div", { className: "panel controls" }, createField(texts.kernel, kernelSelect), bandwidth, addButton, resetButton);
  const element = createElement("div", { className: "playground-panel" },
    controls, status.element, createElement("div", { className: "panel" }, svg), prediction,
    createElement("p", { className: "hint" }, texts.help));
  drawPoints();
  attend(state);
  return { element };
}

/** @param {number} x @param {number} weight @param {number} maximum */
function createBar(x, weight, maximum) {
  const height = (weight / maximum) * (BAR_HEIGHT - 26);
  const bar = createSvgElement("rect", { x: x - 6, y: BOTTOM - height, width: 12, height });
  return weight >= MIN_SHOWN_WEIGHT ? [bar, createSvgElement("text", { x, y: BOTTOM - height - 4 }, formatNumber(weight))] : [bar];
}

/** Format the largest terms of the sum of weight × y. @param {number[][]} points @param {number[]} weights */
function formatWeightedSum(points, weights) {
  const terms = weights.map((weight, n) => ({ weight, y: points[n][1] })).filter(({ weight }) => weight >= MIN_SHOWN_WEIGHT);
  const shown = terms.sort((a, b) => b.weight - a.weight).slice(0, MAX_SHOWN_TERMS);
  const sum = shown.map(({ weight, y }) => `${formatNumber(weight)}·${formatFactor(y)}`).join(" + ");
  return sum + (terms.length > shown.length ? " + …" : "");
}

/** @param {string} weightsLabel @param {Axis} xAxis @param {number} width */
function createGrid(weightsLabel, xAxis, width) {
  const [xTicks, yTicks] = [ticks(...X_RANGE, 10), ticks(...Y_RANGE, 4)];
  const bottom = PLOT_HEIGHT - MARGIN.bottom;
  const right = width - MARGIN.right;
  return createSvgElement("g", { class: "grid-lines", "aria-hidden": "true" },
    ...xTicks.flatMap((value) => {
      const x = xAxis.toPixel(value);
      return [
        createSvgElement("line", { x1: x, x2: x, y1: MARGIN.top, y2: bottom }),
        createSvgElement("text", { x, y: bottom + 16, "text-anchor": "middle" }, formatTick(value, xTicks)),
      ];
    }),
    ...yTicks.flatMap((value) => {
      const y = yAxis.toPixel(value);
      return [
        createSvgElement("line", { x1: MARGIN.left, x2: right, y1: y, y2: y }),
        createSvgElement("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, formatTick(value, yTicks)),
      ];
    }),
    createSvgElement("line", { class: "baseline", x1: MARGIN.left, x2: right, y1: BOTTOM, y2: BOTTOM }),
    createSvgElement("text", { x: MARGIN.left, y: BOTTOM + 14 }, weightsLabel));
}
