/** Training log as chart series: which metrics share a chart, and how new records are appended. */

/**
 * @typedef {{step: number, seconds?: number, [metric: string]: unknown}} LogRecord
 * @typedef {{name: string, points: [number, number][]}} Series of [step, value]
 * @typedef {{name: string, series: Series[]}} Chart
 * @typedef {{records: LogRecord[], next_offset: number, finished: boolean}} LogResponse
 */

/** Metrics that share a chart; any other has its own. */
const CHART_METRICS = /** @type {Object<string, string[]>} */ ({ loss: ["train_loss", "valid_loss", "loss"], quality: ["bleu", "chrf"] });
const IGNORED_FIELDS = new Set(["step", "seconds", "epoch", "tokens"]);

/** Sort the numbers of a log into charts over steps. @param {LogRecord[]} records @returns {Chart[]} */
export function toCharts(records) {
  const points = /** @type {Map<string, Series["points"]>} */ (new Map());
  for (const record of records) {
    if (!Number.isFinite(record.step)) continue;
    for (const [name, value] of Object.entries(record)) {
      if (!IGNORED_FIELDS.has(name) && isNumber(value)) appendTo(points, name, [record.step, value]);
    }
  }
  const charts = /** @type {Map<string, Series[]>} */ (new Map());
  for (const [name, list] of points) {
    const chart = Object.keys(CHART_METRICS).find((key) => CHART_METRICS[key].includes(name)) ?? name;
    appendTo(charts, chart, { name, points: list });
  }
  const speed = stepsPerSecond(records);
  if (speed.length) charts.set("speed", [{ name: "speed", points: speed }]);
  return [...charts].map(([name, series]) => ({ name, series: dropCoarseLoss(series) }));
}

/** @param {unknown} value @returns {value is number} */
function isNumber(value) {
  return Number.isFinite(value);
}

/** @template T @param {Map<string, T[]>} lists @param {string} name @param {T} item */
function appendTo(lists, name, item) {
  const list = lists.get(name);
  if (list) list.push(item);
  else lists.set(name, [item]);
}

/**
 * The training loss is logged every few steps and again at each validation; keep the finer series.
 * @param {Series[]} series
 */
function dropCoarseLoss(series) {
  const fine = series.find(({ name }) => name === "loss");
  return fine && fine.points.length > 1 ? [fine, ...series.filter(({ name }) => !["loss", "train_loss"].includes(name))] : series;
}

/**
 * Compute steps per second from the time stamps of the log. Records of validations are left out if there are others: they
 * come a step or two after those, too soon to measure a speed.
 * @param {LogRecord[]} records
 */
function stepsPerSecond(records) {
  const regular = records.filter(({ loss }) => isNumber(loss));
  const points = /** @type {Series["points"]} */ ([]);
  let previous = { step: 0, seconds: 0 };
  for (const { step, seconds } of regular.length > 1 ? regular : records) {
    if (!isNumber(step) || !isNumber(seconds)) continue;
    const [steps, elapsed] = [step - previous.step, seconds - previous.seconds];
    if (steps > 0 && elapsed > 0) points.push([step, steps / elapsed]);
    previous = { step, seconds };
  }
  return points;
}

/** Return the point of a series nearest to a step. @param {Pick<Series, "points">} series @param {number} step */
export function nearestPoint({ points }, step) {
  return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best), points[0]);
}

/**
 * Return the records with those of a response appended; a log that was started again replaces them.
 * @param {LogRecord[]} records
 * @param {number} offset
 * @param {LogResponse} response
 */
export function appendRecords(records, offset, response) {
  const isRestarted = response.next_offset < offset || (offset > 0 && response.records[0]?.step <= (records[0]?.step ?? -1));
  return isRestarted ? response.records : [...records, ...response.records];
}
