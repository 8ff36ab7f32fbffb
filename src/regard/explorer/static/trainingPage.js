/** Training page: live charts of a run's log, and attention at its checkpoints. */
import { createElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { createCheckpointPanel } from "./checkpointPanel.js";
import { createRunField, createStatus, errorMessage, findRun, markCode } from "./components.js";
import { createLineChart } from "./lineChart.js";
import { appendRecords, toCharts } from "./logSeries.js";

/**
 * @import { Texts } from "./i18n.js"
 * @import { Chart, LogRecord, LogResponse } from "./logSeries.js"
 * @import { Params } from "./urlState.js"
 * @typedef {Map<string, ReturnType<typeof createLineChart>>} LineCharts
 */

const POLL_MILLISECONDS = { running: 1500, finished: 8000 }; // a finished training may be resumed

/** @type {import("./app.js").CreatePage} */
export function createTrainingPage(context, params) {
  const { server, texts } = context;
  if (!server.runs.length) return { element: createElement("p", { className: "hint" }, ...markCode(texts.noRuns)) };
  let run = findRun(server, params.run);
  let leaveRun = new AbortController();
  let checkpointPanel = /** @type {ReturnType<typeof createCheckpointPanel>|null} */ (null);
  context.signal.addEventListener("abort", () => leaveRun.abort());
  const status = createStatus();
  const liveIndicator = createElement("span", { className: "live-indicator", "aria-hidden": "true" });
  const chartGrid = createElement("div", { className: "charts" });
  const checkpointContainer = createElement("div");

  /** @param {Params} runParams */
  function showRun(runParams) {
    leaveRun.abort();
    leaveRun = new AbortController();
    context.updateParams({ run: run.name });
    chartGrid.replaceChildren();
    pollLog(leaveRun.signal);
    checkpointPanel = createCheckpointPanel({ ...context, signal: leaveRun.signal }, run, runParams);
    checkpointContainer.replaceChildren(checkpointPanel.element);
  }

  /** Poll the log until the run is left; each response holds only new records. @param {AbortSignal} signal */
  async function pollLog(signal) {
    let [records, offset] = [/** @type {LogRecord[]} */ ([]), 0];
    const lineCharts = /** @type {LineCharts} */ (new Map());
    while (!signal.aborted) {
      let pause = POLL_MILLISECONDS.finished;
      try {
        const path = `/api/runs/${encodeURIComponent(run.name)}/log?offset=${offset}`;
        const response = /** @type {LogResponse} */ (await context.request(path, { signal }));
        if (response.next_offset !== offset || !records.length) {
          records = appendRecords(records, offset, response);
          updateCharts(toCharts(records), lineCharts);
        }
        offset = response.next_offset;
        if (!response.finished) pause = POLL_MILLISECONDS.running;
        liveIndicator.classList.toggle("is-live", !response.finished);
        status.show(describeProgress(records, response.finished, texts));
      } catch (error) {
        if (isAbortError(error) || signal.aborted) return;
        status.show(errorMessage(error, texts), true);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** @param {Chart[]} charts @param {LineCharts} lineCharts */
  function updateCharts(charts, lineCharts) {
    for (const chart of charts) {
      let lineChart = lineCharts.get(chart.name);
      if (!lineChart) {
        lineChart = createLineChart(texts.training);
        lineCharts.set(chart.name, lineChart);
        chartGrid.append(lineChart.element);
      }
      lineChart.draw(chart);
    }
  }

  const runField = createRunField(context, run.name, (name) => {
    run = findRun(server, name);
    showRun({});
  });
  const header = createElement("div", { className: "panel" },
    createElement("div", { className: "row" }, runField,
      createElement("div", { className: "run-status" }, liveIndicator, status.element)));
  showRun(params);
  return {
    element: createElement("div", { className: "training-page" }, header, chartGrid, checkpointContainer),
    redraw: () => checkpointPanel?.redraw(),
  };
}

/** @param {LogRecord[]} records @param {boolean} isFinished @param {Texts} texts */
function describeProgress(records, isFinished, { training }) {
  const last = records.at(-1);
  if (!last) return isFinished ? training.noLog : training.notStarted;
  return isFinished ? training.finished(last.step) : training.live(last.step);
}
