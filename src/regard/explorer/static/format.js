/** Numbers as a reader wants them. */

/** Write a number with some decimals and a true minus; what JSON could not say is −∞. @param {number|null} value */
export function plain(value, decimals = 2) {
  if (value === null || value === -Infinity) return "−∞";
  const text = value.toFixed(decimals);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** Write a number as a factor of a product: in brackets if it is below zero. @param {number} value */
export function factor(value, decimals = 2) {
  const text = plain(value, decimals);
  return text.startsWith("−") ? `(${text})` : text;
}

/** Write a vector. @param {number[]} values */
export function vector(values, decimals = 2) {
  return `(${values.map((value) => plain(value, decimals)).join(", ")})`;
}

const LOW = "₀₁₂₃₄₅₆₇₈₉";

/** Write a whole number below the line. @param {number} number */
export function low(number) {
  return [...String(number)].map((digit) => LOW[Number(digit)]).join("");
}

/** Write a share as a percentage that never rounds to certain and never breaks. @param {number} share */
export function percent(share) {
  if (share >= 0.995 && share < 1) return ">99\u00a0%";
  if (share > 0 && share < 0.005) return "<1\u00a0%";
  return `${Math.round(100 * share)}\u00a0%`;
}

/** Write a large number briefly: 1,234 or 1.2 M. @param {number} value */
export function brief(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return Math.round(value).toLocaleString("en-US");
}
