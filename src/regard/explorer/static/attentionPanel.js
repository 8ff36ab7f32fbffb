/** Attention playground: scores, mask, softmax and context of a few words, updated as their vectors are moved. */
import { cividis, contrastingColour, toCssColour } from "../viz/colourScale.js";
import { createElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { BANDWIDTH_RANGE, fromParams, MAX_WORDS, moveVector, parseWords, setWords, TEMPERATURE_RANGE, toggleCell, toParams, toRequest } from "./attentionState.js";
import { createField, createSelect, createSlider, createStatus, errorMessage } from "./components.js";
import { latestOnly } from "./debounce.js";
import { formatNumber, formatSubscript } from "./format.js";
import { formulaOfCell } from "./formula.js";
import { createMatrixTable } from "./matrixTable.js";
import { createVectorPlane } from "./vectorPlane.js";

/**
 * @import { AttentionState, VectorKind } from "./attentionState.js"
 * @import { AttendResponse } from "./formula.js"
 * @import { CellContent } from "./matrixTable.js"
 */

const SCORES_WITH_BANDWIDTH = ["gaussian", "boxcar", "triangular", "epanechnikov"];
const ENCODINGS_OF_VECTORS = ["sinusoidal", "rotary"]; // ALiBi changes the scores instead

/** @type {import("./app.js").CreatePage} */
export function createAttentionPanel(context, params) {
  const { server, language } = context;
  const texts = context.texts.playground;
  let state = fromParams(params, language, server.playground);
  let response = /** @type {AttendResponse|null} */ (null);
  let selected = parseSelected(params.selected);
  let isScheduled = false;
  const status = createStatus();

  const attend = latestOnly(async (/** @type {AttentionState} */ requested) => {
    try {
      response = await context.request("/api/attend", { body: toRequest(requested), signal: context.signal });
      status.show("");
      draw();
    } catch (error) {
      if (!isAbortError(error)) status.show(errorMessage(error, context.texts), true);
    }
  });

  /** Update the state; drawing and the request wait for the next frame. @param {AttentionState} newState */
  function setState(newState) {
    state = newState;
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      context.updateParams(toParams(state, language));
      draw();
      attend(state);
    });
  }

  /** @param {number|null} query @param {number|null} key */
  function select(query, key) {
    selected = [query ?? selected[0], key ?? selected[1]];
    context.updateParams({ selected: selected.join() });
    draw();
  }

  /** @param {VectorKind} kind @param {string} colour @param {(index: number) => void} onSelect */
  const createPlane = (kind, colour, onSelect) => createVectorPlane({
    title: texts[kind],
    colour,
    labelOf: (word, vector) => texts.vectorLabel(texts[kind], word, vector),
    onMove: (index, to) => setState(moveVector(state, kind, index, to)),
    onNudge: (index, by) => setState(moveVector(state, kind, index, by.map((change, n) => state[kind][index][n] + change))),
    onSelect,
  });
  const planes = {
    queries: createPlane("queries", "var(--accent)", (index) => select(index, null)),
    keys: createPlane("keys", "var(--highlight)", (index) => select(null, index)),
    values: createPlane("values", "var(--value)", (index) => select(null, index)),
  };
  const onPressMask = (/** @type {number} */ query, /** @type {number} */ key) => {
    if (response) setState(toggleCell(state, response.mask, query, key));
  };
  const tables = {
    scores: createMatrixTable({ title: texts.scoreStep, hint: texts.scoreHint, onHover: select }),
    mask: createMatrixTable({ title: texts.maskStep, hint: texts.maskHint, onHover: select, onPress: onPressMask }),
    weights: createMatrixTable({ title: texts.weightStep, hint: texts.weightHint, onHover: select }),
    context: createMatrixTable({ title: texts.contextStep, hint: texts.contextHint, onHover: (query) => select(query, null) }),
  };
  const formula = createElement("dl", { className: "formula", "aria-live": "off" });

  function draw() {
    const { words } = state;
    if (selected[0] >= words.length || selected[1] >= words.length) selected = [0, 0];
    const current = response?.weights.length === words.length ? response : null; // null while the words have changed
    const encodesVectors = ENCODINGS_OF_VECTORS.includes(state.positions);
    const [query, key] = selected;
    planes.queries.draw({ words, vectors: state.queries, encoded: encodesVectors ? current?.queries : null, selected: query });
    planes.keys.draw({ words, vectors: state.keys, encoded: encodesVectors ? current?.keys : null, selected: key });
    const contexts = (current?.context ?? []).map((vector, n) => ({ vector, label: `→ ${words[n]}`, isSelected: n === query }));
    planes.values.draw({ words, vectors: state.values, contexts, selected: key });
    if (current) drawSteps(words, current);
    maskSelect.value = state.mask;
    updateFields();
  }

  /** @param {string[]} words @param {AttendResponse} current */
  function drawSteps(words, current) {
    const { scores, mask, biased_scores: biased, weights, context: contexts } = current;
    const [maxScore, maxBiased, maxContext] = [scores, biased, contexts].map(maxAbsolute);
    const square = { rows: words, columns: words, selected };
    tables.scores.draw({ ...square, cellAt: (i, j) => signedCell(scores[i][j], maxScore) });
    tables.mask.draw({ ...square, cellAt: (i, j) => (mask[i][j] ? signedCell(biased[i][j], maxBiased) : MASKED_CELL) });
    tables.weights.draw({ ...square, cellAt: (i, j) => weightCell(weights[i][j]) });
    const contextTable = { rows: words, columns: ["x", "y"], selected: [selected[0], -1] };
    tables.context.draw({ ...contextTable, cellAt: (i, j) => signedCell(contexts[i][j], maxContext) });
    drawFormula(words, current);
  }

  /** @param {string[]} words @param {AttendResponse} current */
  function drawFormula(words, current) {
    const [query, key] = selected;
    const title = texts.cell(words[query], words[key], formatSubscript(query + 1), formatSubscript(key + 1));
    const lines = formulaOfCell(current, state.values, query, key);
    formula.replaceChildren(createElement("dt", { className: "formula-title" }, title), createElement("dd"),
      ...lines.flatMap(({ step, text }) => [createElement("dt", {}, texts.steps[step]), createElement("dd", {}, text)]));
  }

  const wordsInput = createElement("input", { type: "text", value: state.words.join(" "), spellcheck: false });
  wordsInput.oninput = () => {
    const words = parseWords(wordsInput.value);
    if (words.length) setState(setWords(state, words));
  };
  const setter = (/** @type {keyof AttentionState} */ name) => (/** @type {string|number} */ value) => setState({ ...state, [name]: value });
  const [temperatureRange, bandwidthRange] = [TEMPERATURE_RANGE, BANDWIDTH_RANGE].map(([min, max]) => ({ min, max, step: 0.05, format: formatNumber }));
  const temperature = createSlider(texts.temperature, { ...temperatureRange, value: state.temperature, onInput: setter("temperature") });
  const integerRange = { min: 0, step: 1, format: String };
  const setLength = (/** @type {number} */ length) => setState({ ...state, length: Math.min(length, state.words.length) });
  const optionalFields = {
    bandwidth: createSlider(texts.bandwidth, { ...bandwidthRange, value: state.bandwidth, onInput: setter("bandwidth") }),
    windowSize: createSlider(texts.windowSize, { ...integerRange, max: MAX_WORDS - 1, value: state.windowSize, onInput: setter("windowSize") }),
    length: createSlider(texts.length, { ...integerRange, max: MAX_WORDS, value: state.length, onInput: setLength }),
  };
  // a custom mask starts from the one before it
  const setMask = (/** @type {string} */ mask) => setState({ ...state, mask, cells: response?.mask ?? state.cells });
  const maskSelect = createSelect(server.playground.masks, state.mask, setMask, texts.maskNames);
  const scoreSelect = createSelect(server.playground.scores, state.score, setter("score"), texts.scoreNames);
  const positionSelect = createSelect(server.playground.positions, state.positions, setter("positions"), texts.positionNames);

  function updateFields() {
    optionalFields.bandwidth.hidden = !SCORES_WITH_BANDWIDTH.includes(state.score);
    optionalFields.windowSize.hidden = state.mask !== "window";
    optionalFields.length.hidden = state.mask !== "lengths";
  }

  const resetButton = createElement("button", { type: "button", className: "button", onclick: () => {
    const cleared = Object.fromEntries(Object.keys(toParams(state, language)).map((name) => [name, ""]));
    context.updateParams({ ...cleared, selected: "" });
    element.replaceWith(createAttentionPanel(context, {}).element);
  } }, texts.reset);
  const controls = createElement("div", { className: "panel controls" },
    createField(texts.words, wordsInput, "wide"),
    createField(texts.score, scoreSelect), optionalFields.bandwidth,
    createField(texts.mask, maskSelect), optionalFields.windowSize, optionalFields.length, temperature,
    createField(texts.positions, positionSelect), resetButton);
  const createArrow = () => createElement("span", { className: "step-arrow", "aria-hidden": "true" }, "→");
  const steps = Object.values(tables).flatMap((table, n) => (n ? [createArrow(), table.element] : [table.element]));
  const element = createElement("div", { className: "playground-panel" },
    controls, status.element,
    createElement("div", { className: "planes" }, ...Object.values(planes).map((plane) => plane.element)),
    createElement("div", { className: "steps" }, ...steps),
    formula);
  updateFields();
  draw();
  attend(state);
  return { element };
}

/** @param {string|undefined} text */
function parseSelected(text) {
  const match = /^([0-7]),([0-7])$/.exec(text ?? "");
  return match ? [Number(match[1]), Number(match[2])] : [0, 2];
}

/** Return the largest absolute value of a matrix, at least 1. @param {(number|null)[][]} matrix */
function maxAbsolute(matrix) {
  return Math.max(1, ...matrix.flat().map((value) => Math.abs(value ?? 0)));
}

/** @type {CellContent} */
const MASKED_CELL = { text: "−∞", background: "", isMasked: true };

/** Colour a number by its sign and size. @param {number|null} value @param {number} maximum @returns {CellContent} */
function signedCell(value, maximum) {
  if (value === null) return MASKED_CELL;
  const percent = Math.round(Math.min(1, Math.abs(value) / maximum) * 55);
  const colour = value < 0 ? "var(--negative)" : "var(--positive)";
  return { text: formatNumber(value), background: `color-mix(in srgb, ${colour} ${percent}%, var(--surface))` };
}

/** @param {number} weight @returns {CellContent} */
function weightCell(weight) {
  const colour = cividis(weight);
  return { text: formatNumber(weight), background: toCssColour(colour), colour: contrastingColour(colour) };
}
