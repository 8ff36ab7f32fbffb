/** Controls of the viewer: header, tabs, overview, toolbar and texts around the canvases. */
import { createElement } from "./dom.js";
import { canGroup } from "./headView.js";

/**
 * @import { Texts } from "./locales/en.js"
 * @import { MapGroup } from "./mapGroups.js"
 * @import { Command, State } from "./state.js"
 * @import { Trace } from "./trace.js"
 * @typedef {ReturnType<typeof buildControls>} Controls
 * @typedef {"language"|"theme"|"png"|"svg"|"json"} Request what a button asks for beyond the state
 */

const TOGGLES = /** @type {const} */ (["mergeSubwords", "collapseSpecial", "autoScale"]);
const MODES = /** @type {const} */ (["matrix", "lines", "image"]);
const ROWS = /** @type {const} */ (["output", "input"]);

/**
 * Build the elements of a viewer in `root`.
 * @param {HTMLElement} root
 * @param {Trace} trace
 * @param {MapGroup[]} groups
 * @param {{dispatch: (command: Command) => void, onRequest: (request: Request) => void, embedded: boolean}} options
 */
export function buildControls(root, trace, groups, { dispatch, onRequest, embedded }) {
  /** @param {string} className @param {() => void} onclick */
  const button = (className, onclick, text = "") => createElement("button", { type: "button", className, onclick }, text);
  const toggle = (/** @type {typeof TOGGLES[number]} */ type) => button("toggle", () => dispatch({ type }));
  const elements = {
    tabs: groups.map((_, to) => button("tab", () => dispatch({ type: "tab", to }))),
    modes: MODES.map((to) => button("segment", () => dispatch({ type: "mode", to }))),
    rowsLabel: createElement("span"),
    rows: ROWS.map((to) => button("segment", () => dispatch({ type: "rows", to }))),
    mergeSubwords: toggle("mergeSubwords"),
    collapseSpecial: toggle("collapseSpecial"),
    autoScale: toggle("autoScale"),
    language: button("button", () => onRequest("language")),
    theme: button("button theme-button", () => onRequest("theme")),
    png: button("button", () => onRequest("png"), "PNG"),
    svg: button("button", () => onRequest("svg"), "SVG"),
    json: button("button", () => onRequest("json"), "JSON"),
    threshold: createElement("input", { type: "range", min: "0", max: "0.5", step: "0.01" }),
    thresholdLabel: createElement("span"),
    thresholdValue: createElement("output"),
    opacity: createElement("input", { type: "range", min: "0", max: "1", step: "0.05" }),
    opacityLabel: createElement("span"),
    opacityValue: createElement("output"),
    overviewTitle: createElement("h3"),
    overview: createElement("canvas", { tabIndex: 0, role: "img", className: "overview-canvas" }),
    canvas: createElement("canvas", { tabIndex: 0, role: "img", className: "main-canvas" }),
    overlay: createElement("canvas", { className: "overlay-canvas", "aria-hidden": "true" }),
    caption: createElement("p", { className: "caption" }),
    description: createElement("p", { className: "description", role: "status", "aria-live": "polite" }),
    shortcuts: createElement("p", { className: "shortcuts" }),
  };
  elements.threshold.oninput = () => dispatch({ type: "threshold", to: Number(elements.threshold.value) });
  elements.opacity.oninput = () => dispatch({ type: "opacity", to: Number(elements.opacity.value) });
  const thresholdField = createElement("label", { className: "threshold" },
    elements.thresholdLabel, elements.threshold, elements.thresholdValue);
  const opacityField = createElement("label", { className: "threshold" }, elements.opacityLabel, elements.opacity, elements.opacityValue);
  const frame = createElement("div", { className: "canvas-frame" }, elements.canvas, elements.overlay);
  const tablist = createElement("nav", { className: "tabs", role: "tablist" }, ...elements.tabs);
  for (const tab of elements.tabs) tab.setAttribute("role", "tab");
  const title = createElement("div", { className: "viewer-title" },
    createElement(embedded ? "h2" : "h1", { dir: "auto" }, trace.title || trace.model || "regard"),
    createElement("p", { dir: "auto" }, trace.title ? trace.model : ""));
  const pageButtons = embedded ? [] : [elements.language, elements.theme]; // an embedding page has its own
  const header = createElement("header", { className: "viewer-header" }, title,
    createElement("div", { className: "actions" }, elements.png, elements.svg, elements.json, ...pageButtons));
  const overviewPanel = createElement("div", { className: "overview-panel" },
    elements.overviewTitle, createElement("div", { className: "overview-scroll" }, elements.overview));
  const options = createElement("div", { className: "view-options", role: "group" },
    elements.mergeSubwords, elements.collapseSpecial, elements.autoScale, thresholdField, opacityField);
  const sidebar = createElement("aside", { className: "sidebar" }, overviewPanel, options);
  const modeGroup = createElement("div", { className: "segmented-control", role: "group" }, ...elements.modes);
  const rowsGroup = createElement("div", { className: "segmented-control", role: "group" }, ...elements.rows);
  const rowsField = createElement("div", { className: "rows-field" }, elements.rowsLabel, rowsGroup);
  const toolbar = createElement("div", { className: "toolbar" }, modeGroup, rowsField);
  const main = createElement(embedded ? "section" : "main", { className: "viewer-main" },
    toolbar, elements.caption, frame, elements.description);
  root.classList.add("viewer");
  root.replaceChildren(header, tablist, createElement("div", { className: "viewer-body" }, sidebar, main), elements.shortcuts);
  return { ...elements, frame, tablist, modeGroup, rowsGroup, rowsField, options, thresholdField, opacityField };
}

/**
 * Update all texts and switches.
 * @param {Controls} controls
 * @param {{trace: Trace, state: State, groups: MapGroup[], texts: Texts, description: string, caption: string}} view
 */
export function updateControls(controls, { trace, state, groups, texts, description, caption }) {
  const hasImage = groups[state.tab].maps[state.layer].keys in trace.images;
  const mode = state.mode === "image" && !hasImage ? "matrix" : state.mode; // other keys have no image
  controls.tabs.forEach((tab, n) => {
    setText(tab, texts.groups[groups[n].name] ?? groups[n].name);
    tab.setAttribute("aria-selected", String(n === state.tab));
  });
  controls.tablist.setAttribute("aria-label", texts.tabs);
  controls.modeGroup.setAttribute("aria-label", texts.viewModes);
  controls.modes.forEach((button, n) => {
    setText(button, texts[MODES[n]]);
    button.setAttribute("aria-pressed", String(mode === MODES[n]));
    button.hidden = MODES[n] === "image" && !hasImage;
  });
  controls.opacityField.hidden = mode !== "image";
  controls.thresholdField.hidden = mode === "image";
  setText(controls.opacityLabel, texts.opacity);
  setText(controls.opacityValue, state.opacity.toFixed(2));
  controls.opacity.value = String(state.opacity);
  controls.rowsField.hidden = groups[state.tab].maps[state.layer].query_inputs === null; // rows have one name only
  setText(controls.rowsLabel, texts.rowsLabel);
  setLabel(controls.rowsGroup, texts.rowsHelp);
  controls.rows.forEach((button, n) => {
    setText(button, texts.rowNames[ROWS[n]]);
    button.setAttribute("aria-pressed", String(state.rows === ROWS[n]));
  });
  setLabel(controls.options, texts.options);
  updateToggles(controls, trace, state, groups, texts);
  updateSaveButtons(controls, trace, texts);
  setText(controls.language, texts.otherLanguage);
  setLabel(controls.theme, texts.theme);
  controls.theme.title = texts.theme;
  setText(controls.thresholdLabel, texts.threshold);
  setText(controls.thresholdValue, state.threshold.toFixed(2));
  controls.threshold.value = String(state.threshold);
  setText(controls.overviewTitle, texts.overview);
  setLabel(controls.overview, texts.overviewHelp);
  setLabel(controls.canvas, caption);
  setText(controls.caption, caption);
  setText(controls.description, description);
  setText(controls.shortcuts, texts.shortcuts);
}

/**
 * Disable toggles that would change nothing; the tooltip says why.
 * @param {Controls} controls
 * @param {Trace} trace
 * @param {State} state
 * @param {MapGroup[]} groups
 * @param {Texts} texts
 */
function updateToggles(controls, trace, state, groups, texts) {
  const map = groups[state.tab].maps[state.layer];
  const axes = [trace.tokens[map.queries], trace.tokens[map.keys]];
  const hasSubwords = axes.some(({ words }) => words !== null && new Set(words).size < words.length);
  const hasSpecial = axes.some(({ special, padding }) => special.length + padding.length > 0);
  /** @param {boolean} isUseful @param {string} reason */
  const disabledReason = (isUseful, reason) => (canGroup(map) ? (isUseful ? "" : reason) : texts.needsAllWeights);
  const reasons = {
    mergeSubwords: disabledReason(hasSubwords, texts.noSubwords),
    collapseSpecial: disabledReason(hasSpecial, texts.noSpecial),
    autoScale: "",
  };
  for (const name of TOGGLES) {
    const reason = reasons[name];
    setText(controls[name], texts[name]);
    controls[name].disabled = reason !== "";
    controls[name].title = reason;
    controls[name].setAttribute("aria-pressed", String(state[name] && !reason));
  }
}

/** @param {Controls} controls @param {Trace} trace @param {Texts} texts */
function updateSaveButtons(controls, trace, texts) {
  setLabel(controls.png, texts.savePng);
  setLabel(controls.svg, texts.saveSvg);
  setLabel(controls.json, texts.saveJson);
  [controls.png.title, controls.svg.title] = [texts.savePng, texts.saveSvg];
  // of a summarised map the page holds only what it draws, which is not a complete trace
  controls.json.disabled = trace.maps.some((map) => map.weights === null);
  controls.json.title = controls.json.disabled ? texts.jsonUnavailable : texts.saveJson;
}

/**
 * Set a text only if it differs, so that live regions are not announced again.
 * @param {Element} element
 * @param {string} text
 */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {string} label */
function setLabel(element, label) {
  element.setAttribute("aria-label", label);
}
