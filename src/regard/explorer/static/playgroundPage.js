/** Playground page: attention on a few vectors, and kernel regression on a few points. */
import { createElement } from "../viz/dom.js";
import { createAttentionPanel } from "./attentionPanel.js";
import { createSegmentedControl } from "./components.js";
import { createRegressionPanel } from "./regressionPanel.js";
import { ownKeyOr } from "./urlState.js";

/** @type {Object<string, import("./app.js").CreatePage>} */
const PANELS = { attention: createAttentionPanel, regression: createRegressionPanel };

/** @type {import("./app.js").CreatePage} */
export function createPlaygroundPage(context, params) {
  const texts = context.texts.playground;
  const initialPanel = ownKeyOr(PANELS, params.panel, "attention");
  const container = createElement("div");
  const lead = createElement("p", { className: "lead" });
  let leavePanel = new AbortController();
  context.signal.addEventListener("abort", () => leavePanel.abort());

  /** @param {string} panel */
  function showPanel(panel) {
    leavePanel.abort();
    leavePanel = new AbortController();
    context.updateParams({ panel: panel === "attention" ? "" : panel });
    lead.textContent = texts.leads[panel];
    container.replaceChildren(PANELS[panel]({ ...context, signal: leavePanel.signal }, params).element);
  }

  const panelSelect = createSegmentedControl(Object.keys(PANELS), texts.panels, initialPanel, showPanel);
  showPanel(initialPanel);
  const header = createElement("div", { className: "playground-header" }, panelSelect, lead);
  return { element: createElement("div", {}, header, container) };
}
