/** From numbers to places on a picture, and back. */

/**
 * @typedef {{to: (value: number) => number, from: (pixel: number) => number, least: number, most: number}} Axis
 */

/** A straight scale from numbers to pixels. @param {number[]} values @param {number[]} pixels @returns {Axis} */
export function scale([least, most], [start, end]) {
  const share = (/** @type {number} */ value) => (most === least ? 0.5 : (value - least) / (most - least));
  const to = (/** @type {number} */ value) => start + share(value) * (end - start);
  return { to, from: (pixel) => least + ((pixel - start) / (end - start)) * (most - least), least, most };
}

/** Round steps that fit between two numbers, about as many as wanted. @param {number} least @param {number} most */
export function ticks(least, most, count = 5) {
  if (!(most > least)) return [least];
  const rough = (most - least) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999) ?? rough;
  const found = [];
  for (let n = Math.ceil(least / step - 1e-9); n * step <= most + step * 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}

/** Write a tick: no more decimals than its step needs. @param {number} value @param {number[]} all */
export function tickText(value, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(value) || 1;
  if (Math.abs(value) >= 10_000) return `${Number((value / 1000).toPrecision(4))}k`;
  const decimals = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return step < 1e-4 ? value.toExponential(0).replace("-", "−") : value.toFixed(decimals).replace("-", "−");
}

/** The least and the greatest of numbers, with some room around them. @param {number[]} values */
export function range(values, room = 0.06) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return [0, 1];
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const edge = (most - least || Math.abs(most) || 1) * room;
  return [least - edge, most + edge];
}

/** A line through points as SVG has it; a point that is null breaks it. @param {(number[]|null)[]} points */
export function path(points) {
  let drawn = "";
  let pen = "M";
  for (const point of points) {
    if (point === null) {
      pen = "M";
      continue;
    }
    drawn += `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = "L";
  }
  return drawn;
}
