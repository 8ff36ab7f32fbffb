/** Compare: two runs, two sentences or two heads beside each other, and their difference. */
import { element } from "../viz/controls.js";
import { difference, differences, obstacle } from "./difference.js";
import { map } from "./headMatrix.js";
import { percent } from "./format.js";
import { side } from "./comparisonSide.js";

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const { known, texts } = context;
  const names = texts.compare;
  if (!known.runs.length) return { element: element("p", { className: "hint" }, texts.noRuns) };
  const shown = /** @type {(import("./comparisonSide.js").Head|null)[]} */ ([null, null]);

  /** @type {(query: number|null, key: number|null) => void} */
  const pointed = (query, key) => {
    for (const picture of [sides[0].map, sides[1].map, between]) picture.point(query, key);
    said.textContent = tell(query, key);
  };
  const sides = [0, 1].map((n) => side(context, n, values, {
    pointed,
    ready(what) {
      shown[n] = what;
      subtract();
    },
  }));
  const between = map(context, { title: names.minus, pointed });
  const why = element("p", { className: "hint", role: "status" });
  const said = element("p", { className: "sentence" });

  function subtract() {
    const [one, other] = shown;
    between.element.hidden = true;
    said.textContent = "";
    if (!one || !other) {
      why.textContent = "";
      return;
    }
    const reason = obstacle(one.view, other.view);
    if (reason) {
      why.textContent = names[reason](sizes(one.view), sizes(other.view));
      return;
    }
    const view = difference(one.view, other.view);
    why.textContent = view.maximum === 0 ? names.same : names.moved(percent(view.moved));
    between.element.hidden = false;
    between.show({ view, names: one.names, scale: differences, top: Math.max(view.maximum, 0.05) });
  }

  /** Say what both heads give to the cell that is pointed at. @param {number|null} query @param {number|null} key */
  function tell(query, key) {
    const [one, other] = shown;
    if (!one || !other || query === null || key === null) return "";
    const [here, there] = [one.view, other.view].map((view) => (query < view.queries.length && key < view.keys.length ? view.at(query, key) : null));
    if (here === null || there === null) return "";
    return names.cell(one.view.queries[query].text, one.view.keys[key].text, here.toFixed(2), there.toFixed(2));
  }

  between.element.hidden = true;
  const third = element("section", { className: "panel side-panel" }, element("h2", {}, names.difference), element("p", { className: "lead" }, names.differenceLead), why, said, between.element);
  return {
    element: element("div", { className: "compare" }, element("p", { className: "lead" }, names.lead),
      element("div", { className: "beside" }, ...sides.map((one) => one.element), third)),
    repaint: () => [sides[0].map, sides[1].map, between].forEach((picture) => picture.repaint()),
  };
}

/** @param {import("../viz/headView.js").Cells} view */
function sizes({ queries, keys }) {
  return `${queries.length} × ${keys.length}`;
}
