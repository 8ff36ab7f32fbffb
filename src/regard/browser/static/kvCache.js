/** Cache of projected keys and values, one row per token of any beam. */

/** @import { KeyValues } from "./attention.js" */

const FIRST_CAPACITY = 64; // rows

export class KVCache {
  /** @param {number} keyWidth of a row @param {number} valueWidth */
  constructor(keyWidth, valueWidth) {
    this.keys = /** @type {Float32Array} */ (new Float32Array(FIRST_CAPACITY * keyWidth));
    this.values = /** @type {Float32Array} */ (new Float32Array(FIRST_CAPACITY * valueWidth));
    this.keyWidth = keyWidth;
    this.valueWidth = valueWidth;
  }

  /** Write rows behind the first ones, in place. @param {KeyValues} rows @param {number} first how many come before */
  write({ keys, values }, first) {
    this.keys = withRows(this.keys, keys, first * this.keyWidth);
    this.values = withRows(this.values, values, first * this.valueWidth);
  }
}

/** Write rows into an array; if it is too short, into a copy of twice its length. @param {Float32Array} array @param {Float32Array} rows @param {number} start */
function withRows(array, rows, start) {
  const end = start + rows.length;
  let target = array;
  if (end > array.length) {
    target = new Float32Array(Math.max(end, 2 * array.length));
    target.set(array);
  }
  target.set(rows, start);
  return target;
}
