/** Cache of projected keys and values, one row per token of any beam. */

/** @import { KeyValues } from "./attention.js" */

const FIRST_CAPACITY = 64; // rows

export class KVCache {
  /** @param {number} width of a row */
  constructor(width) {
    this.width = width;
    this.keys = new Float32Array(FIRST_CAPACITY * width);
    this.values = new Float32Array(FIRST_CAPACITY * width);
  }

  /** Write rows behind the first ones, in place. @param {KeyValues} rows @param {number} first how many come before */
  write({ keys, values }, first) {
    const start = first * this.width;
    if (start + keys.length > this.keys.length) {
      this.keys = grown(this.keys, start + keys.length);
      this.values = grown(this.values, start + keys.length);
    }
    this.keys.set(keys, start);
    this.values.set(values, start);
  }
}

/** Copy an array into one of at least twice its length. @param {Float32Array} array @param {number} length */
function grown(array, length) {
  const copy = new Float32Array(Math.max(length, 2 * array.length));
  copy.set(array);
  return copy;
}
