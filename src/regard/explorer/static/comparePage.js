/** Compare page: two heads of any runs and sentences side by side, and their difference. */
import { createElement } from "../viz/dom.js";
import { markCode } from "./components.js";
import { createComparisonSide } from "./comparisonSide.js";
import { differenceScale, incompatibility, subtractHeads } from "./difference.js";
import { formatPercent } from "./format.js";
import { createHeadMatrix } from "./headMatrix.js";
import { createRowsSwitch } from "./headSelect.js";

const MIN_SCALE_MAXIMUM = 0.05; // so that tiny differences do not look large

/** @type {import("./app.js").CreatePage} */
export function createComparePage(context, params) {
  const { server, texts } = context;
  if (!server.runs.length) return { element: createElement("p", { className: "hint" }, ...markCode(texts.noRuns)) };
  const heads = /** @type {(import("./headSelect.js").SelectedHead|null)[]} */ ([null, null]);

  /** @type {(query: number|null, key: number|null) => void} */
  const onHover = (query, key) => {
    for (const matrix of matrices) matrix.select(query, key);
    description.textContent = describeCell(query, key);
  };
  const sides = [0, 1].map((index) => createComparisonSide(context, index, params, {
    onHover,
    onHead(head) {
      heads[index] = head;
      rowsSwitch.hidden = !heads.some((shown) => shown?.hasInputs);
      showDifference();
    },
  }));
  const rowsSwitch = createRowsSwitch(context.language, params.rows, (rows) => {
    context.updateParams({ rows: rows === "input" ? rows : "" });
    for (const side of sides) side.setRows(rows);
  });
  rowsSwitch.hidden = true;
  const differenceMatrix = createHeadMatrix(context, { title: texts.compare.minus, onHover });
  const matrices = [sides[0].matrix, sides[1].matrix, differenceMatrix];
  const summary = createElement("p", { className: "hint", role: "status" });
  const description = createElement("p", { className: "description" });

  function showDifference() {
    const [a, b] = heads;
    differenceMatrix.element.hidden = true;
    description.textContent = "";
    summary.textContent = "";
    if (!a || !b) return;
    const reason = incompatibility(a.view, b.view);
    if (reason) {
      summary.textContent = texts.compare[reason](cellCounts(a.view), cellCounts(b.view));
      return;
    }
    const view = subtractHeads(a.view, b.view);
    summary.textContent = view.maximum === 0 ? texts.compare.identical : texts.compare.totalVariation(formatPercent(view.totalVariation));
    differenceMatrix.element.hidden = false;
    const maximum = Math.max(view.maximum, MIN_SCALE_MAXIMUM);
    differenceMatrix.show({ view, axisNames: a.axisNames, scale: differenceScale, maximum });
  }

  /** Describe the weights of both heads at a cell. @param {number|null} query @param {number|null} key */
  function describeCell(query, key) {
    const [a, b] = heads;
    if (!a || !b || query === null || key === null) return "";
    const [weightA, weightB] = [a.view, b.view].map((view) =>
      query < view.queries.length && key < view.keys.length ? view.at(query, key) : null);
    if (weightA === null || weightB === null) return "";
    return texts.compare.cell(a.view.queries[query].text, a.view.keys[key].text, weightA.toFixed(2), weightB.toFixed(2));
  }

  differenceMatrix.element.hidden = true;
  const differencePanel = createElement("section", { className: "panel compare-panel" },
    createElement("h2", {}, texts.compare.difference),
    createElement("p", { className: "lead" }, texts.compare.differenceLead),
    summary, description, differenceMatrix.element);
  return {
    element: createElement("div", { className: "compare-page" },
      createElement("div", { className: "compare-header" }, createElement("p", { className: "lead" }, texts.compare.lead), rowsSwitch),
      createElement("div", { className: "compare-columns" }, ...sides.map((side) => side.element), differencePanel)),
    redraw: () => matrices.forEach((matrix) => matrix.redraw()),
  };
}

/** @param {import("../viz/headView.js").MatrixData} view */
function cellCounts({ queries, keys }) {
  return `${queries.length} × ${keys.length}`;
}
