/** Formatting of numbers. */

/** Format a number with a true minus sign. JSON has no infinity: null stands for −∞. @param {number|null} value */
export function formatNumber(value, decimals = 2) {
  if (value === null || value === -Infinity) return "−∞";
  const text = value.toFixed(decimals);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** Format a factor of a product, with parentheses if it is negative. @param {number} value */
export function formatFactor(value, decimals = 2) {
  const text = formatNumber(value, decimals);
  return text.startsWith("−") ? `(${text})` : text;
}

/** @param {number[]} values */
export function formatVector(values, decimals = 2) {
  return `(${values.map((value) => formatNumber(value, decimals)).join(", ")})`;
}

const SUBSCRIPT_DIGITS = "₀₁₂₃₄₅₆₇₈₉";

/** Format an integer as a subscript. @param {number} integer */
export function formatSubscript(integer) {
  return [...String(integer)].map((digit) => SUBSCRIPT_DIGITS[Number(digit)]).join("");
}

/**
 * Format a probability as a percentage that is 0 or 100 only if it is exact, with a non-breaking space.
 * @param {number} fraction
 */
export function formatPercent(fraction) {
  if (fraction >= 0.995 && fraction < 1) return ">99\u00a0%";
  if (fraction > 0 && fraction < 0.005) return "<1\u00a0%";
  return `${Math.round(100 * fraction)}\u00a0%`;
}

/** Format a count: 1,234 or 1.2 M. @param {number} value */
export function formatCount(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return Math.round(value).toLocaleString("en-US");
}

/** Format a metric with four significant digits: 0.001235, 7,328 or 8.124e−7. @param {number} value */
export function formatMetric(value) {
  const rounded = Number(value.toPrecision(4));
  const text = Math.abs(rounded) >= 1000 ? rounded.toLocaleString("en-US") : String(rounded);
  return text.replace("-", "−");
}
