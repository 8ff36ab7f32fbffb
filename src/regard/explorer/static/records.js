/** The log of a training as curves: which figures belong together, and how they go. */

/**
 * @typedef {{step: number}&Object<string, any>} Record
 * @typedef {{name: string, points: [number, number][]}} Curve
 * @typedef {{name: string, curves: Curve[]}} Chart
 */

/** Figures that share a chart; any other has one of its own. */
const TOGETHER = { loss: ["train_loss", "valid_loss", "loss"], quality: ["bleu", "chrf"] };
const NOT_DRAWN = new Set(["step", "seconds", "epoch", "tokens"]);

/** Sort the numbers of a log into charts, by step. @param {Record[]} records @returns {Chart[]} */
export function charts(records) {
  const curves = new Map();
  for (const record of records) {
    if (!Number.isFinite(record.step)) continue;
    for (const [name, value] of Object.entries(record)) {
      if (NOT_DRAWN.has(name) || !Number.isFinite(value)) continue;
      if (!curves.has(name)) curves.set(name, []);
      curves.get(name).push([record.step, value]);
    }
  }
  const found = new Map();
  for (const [name, points] of curves) {
    const chart = Object.keys(TOGETHER).find((key) => TOGETHER[key].includes(name)) ?? name;
    if (!found.has(chart)) found.set(chart, []);
    found.get(chart).push({ name, points });
  }
  return [...withSpeed(found, records)].map(([name, parts]) => ({ name, curves: parts }));
}

/** How many steps a second: told by the clock of the log, if there is no better figure. */
function withSpeed(found, records) {
  const clocked = records.filter(({ step, seconds }) => Number.isFinite(step) && Number.isFinite(seconds));
  const points = clocked.flatMap(({ step, seconds }, n) => {
    const before = n ? clocked[n - 1] : { step: 0, seconds: 0 };
    return seconds > before.seconds && step > before.step ? [[step, (step - before.step) / (seconds - before.seconds)]] : [];
  });
  if (points.length) found.set("speed", [{ name: "speed", points }]);
  return found;
}

/** Find the point of a curve that is nearest to a step. @param {Curve} curve */
export function nearest({ points }, step) {
  return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best), points[0]);
}

/** The records of a log as lines come in; a log that begins anew replaces what was known. */
export function joined(known, since, answer) {
  const restarted = answer.next < since || (since > 0 && answer.records[0]?.step <= (known[0]?.step ?? -1));
  return restarted ? answer.records : [...known, ...answer.records];
}
