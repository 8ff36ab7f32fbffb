/** Axes of charts: linear scales, ticks, ranges and line paths. */

/**
 * @typedef {{toPixel: (value: number) => number, toValue: (pixel: number) => number, min: number, max: number}} Axis
 */

/**
 * Create a linear scale from values to pixels; a single value is centred.
 * @param {number[]} values
 * @param {number[]} pixels
 * @returns {Axis}
 */
export function linearScale([min, max], [start, end]) {
  const fraction = (/** @type {number} */ value) => (max === min ? 0.5 : (value - min) / (max - min));
  return {
    toPixel: (value) => start + fraction(value) * (end - start),
    toValue: (pixel) => min + ((pixel - start) / (end - start)) * (max - min),
    min,
    max,
  };
}

/** Return about `count` round values between two numbers. @param {number} min @param {number} max */
export function ticks(min, max, count = 5) {
  if (!(max > min)) return [min];
  const target = (max - min) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(target));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= target * 0.999) ?? target;
  const values = [];
  for (let n = Math.ceil(min / step - 1e-9); n * step <= max + step * 1e-9; n++) values.push(Number((n * step).toPrecision(12)));
  return values;
}

/**
 * Format a tick with as many decimals as the distance to the next one needs; from 10,000 on, an axis is in thousands.
 * @param {number} value
 * @param {number[]} all
 */
export function formatTick(value, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(value) || 1;
  const inThousands = Math.max(...all.map(Math.abs)) >= 10_000;
  if (inThousands) return value ? `${Number((value / 1000).toPrecision(4))}k`.replace("-", "−") : "0";
  if (step < 1e-4) return value.toExponential(0).replace("-", "−");
  const decimals = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en-US", digits).replace("-", "−");
}

/** Return the range of the finite values, padded by a fraction of it. @param {number[]} values */
export function paddedExtent(values, padding = 0.06) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return [0, 1];
  const [min, max] = [Math.min(...finite), Math.max(...finite)];
  const margin = (max - min || Math.abs(max) || 1) * padding;
  return [min - margin, max + margin];
}

/** Return the SVG path through points; null interrupts the line. @param {(number[]|null)[]} points */
export function linePath(points) {
  let path = "";
  let command = "M";
  for (const point of points) {
    if (point === null) {
      command = "M";
      continue;
    }
    path += `${command}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    command = "L";
  }
  return path;
}
