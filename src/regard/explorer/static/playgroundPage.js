/** Playground: attention on a few vectors, and kernel regression on a few points. */
import { element } from "../viz/controls.js";
import { oneOf } from "./urlState.js";
import { attention } from "./attentionPanel.js";
import { segments } from "./components.js";
import { regression } from "./regressionPanel.js";

/** @type {Object<string, (context: import("./app.js").Context, values: Object<string, string>) => {element: HTMLElement}>} */
const PANELS = { attention, regression };

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const names = context.texts.playground;
  const chosen = oneOf(PANELS, values.panel, "attention");
  const place = element("div");
  const lead = element("p", { className: "lead" });
  let left = new AbortController();
  context.signal.addEventListener("abort", () => left.abort());

  /** @param {string} panel @param {Object<string, string>} start */
  function show(panel, start) {
    left.abort();
    left = new AbortController();
    context.note({ panel: panel === "attention" ? "" : panel });
    lead.textContent = names.leads[panel];
    place.replaceChildren(PANELS[panel]({ ...context, signal: left.signal }, start).element);
  }

  const kept = { ...values };
  const choose = segments(Object.keys(PANELS), names.panels, chosen, (panel) => show(panel, kept));
  show(chosen, values);
  return { element: element("div", { className: "playground" }, element("div", { className: "playground-head" }, choose, lead), place) };
}
