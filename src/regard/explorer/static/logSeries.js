/** The log of a training as curves: which figures belong together, and how they go. */

/**
 * @typedef {{step: number, seconds?: number, [figure: string]: unknown}} Record
 * @typedef {{name: string, points: [number, number][]}} Curve
 * @typedef {{name: string, curves: Curve[]}} Chart
 * @typedef {{records: Record[], next_offset: number, finished: boolean}} Answer of the server, when asked for a log
 */

/** Figures that share a chart; any other has one of its own. */
const TOGETHER = /** @type {Object<string, string[]>} */ ({ loss: ["train_loss", "valid_loss", "loss"], quality: ["bleu", "chrf"] });
const NOT_DRAWN = new Set(["step", "seconds", "epoch", "tokens"]);

/** Sort the numbers of a log into charts, by step. @param {Record[]} records @returns {Chart[]} */
export function charts(records) {
  const curves = /** @type {Map<string, Curve["points"]>} */ (new Map());
  for (const record of records) {
    if (!Number.isFinite(record.step)) continue;
    for (const [name, value] of Object.entries(record)) {
      if (NOT_DRAWN.has(name) || !isNumber(value)) continue;
      put(curves, name, [record.step, value]);
    }
  }
  const found = /** @type {Map<string, Curve[]>} */ (new Map());
  for (const [name, points] of curves) {
    const chart = Object.keys(TOGETHER).find((key) => TOGETHER[key].includes(name)) ?? name;
    put(found, chart, { name, points });
  }
  return [...withSpeed(found, records)].map(([name, parts]) => ({ name, curves: finest(parts) }));
}

/** @param {unknown} value @returns {value is number} */
function isNumber(value) {
  return Number.isFinite(value);
}

/** Add one to the list of a name. @template T @param {Map<string, T[]>} lists @param {string} name @param {T} one */
function put(lists, name, one) {
  const list = lists.get(name);
  if (list) list.push(one);
  else lists.set(name, [one]);
}

/** Of the training's loss, told every few steps and at each validation, the finer curve is enough. @param {Curve[]} curves */
function finest(curves) {
  const fine = curves.find(({ name }) => name === "loss");
  return fine && fine.points.length > 1 ? [fine, ...curves.filter(({ name }) => !["loss", "train_loss"].includes(name))] : curves;
}

/**
 * How many steps a second: told by the clock of the log, if there is no better figure.
 * @param {Map<string, Curve[]>} found
 * @param {Record[]} records
 */
function withSpeed(found, records) {
  const points = /** @type {Curve["points"]} */ ([]);
  let before = { step: 0, seconds: 0 };
  for (const { step, seconds } of records) {
    if (!isNumber(step) || !isNumber(seconds)) continue;
    const [steps, passed] = [step - before.step, seconds - before.seconds];
    if (steps > 0 && passed > 0) points.push([step, steps / passed]);
    before = { step, seconds };
  }
  if (points.length) found.set("speed", [{ name: "speed", points }]);
  return found;
}

/** Find the point of a curve that is nearest to a step. @param {Curve} curve @param {number} step */
export function nearest({ points }, step) {
  return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best), points[0]);
}

/**
 * The records of a log as lines come in; a log that begins anew replaces what was known.
 * @param {Record[]} known
 * @param {number} offset
 * @param {Answer} answer
 */
export function joined(known, offset, answer) {
  const restarted = answer.next_offset < offset || (offset > 0 && answer.records[0]?.step <= (known[0]?.step ?? -1));
  return restarted ? answer.records : [...known, ...answer.records];
}
