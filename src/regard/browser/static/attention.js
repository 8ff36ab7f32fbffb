/** Multi-head attention: score → softmax → weighted sum. The weights are always returned. */
import { createLinear, linear, softmax } from "./kernels.js";
import { rotate } from "./positions.js";

/**
 * @import { Linear } from "./kernels.js"
 * @import { Tensor } from "./parameters.js"
 * @import { RotaryRecord } from "./positions.js"
 * @typedef {{weight: number, bias: number|null}} LinearRecord numbers of tensors
 * @typedef {{compare: "product"|"cosine"|"distance", scale: number, cap: number|null, matrix: number|null}} ScoreRecord
 * @typedef {{query: LinearRecord, key: LinearRecord, value: LinearRecord, out: LinearRecord, heads: number, key_heads: number,
 *   head_width: number, score: ScoreRecord, positions: RotaryRecord|{kind: "alibi", slopes: number[]}|null}} AttentionRecord
 * @typedef {{keys: Float32Array, values: Float32Array}} KeyValues one row per token
 * @typedef {(row: number) => number} PositionOf
 * @typedef {(row: number) => ArrayLike<number>} VisibleKeys which rows of the keys a query may attend to, by position
 * @typedef {{output: Float32Array, weights: Float32Array[]}} AttentionOutput weights (head, key) of every query
 */

const MIN_NORM = 1e-8; // as in regard.attention.Cosine

/** Make a linear layer from the numbers of its tensors. @param {LinearRecord} record @param {Tensor[]} tensors */
export function linearOf({ weight, bias }, tensors) {
  return createLinear(tensors[weight], bias === null ? null : tensors[bias]);
}

export class MultiHeadAttention {
  /** @param {AttentionRecord} record @param {Tensor[]} tensors */
  constructor(record, tensors) {
    this.query = linearOf(record.query, tensors);
    this.key = linearOf(record.key, tensors);
    this.value = linearOf(record.value, tensors);
    this.out = linearOf(record.out, tensors);
    this.heads = record.heads;
    this.keyHeads = record.key_heads;
    this.headWidth = record.head_width;
    this.score = record.score;
    this.rotary = record.positions?.kind === "rotary" ? record.positions : null;
    this.slopes = record.positions?.kind === "alibi" ? record.positions.slopes : null;
    this.matrix = record.score.matrix === null ? null : transposed(tensors[record.score.matrix]);
  }

  /**
   * Project keys and values, as the score compares them.
   * @param {Float32Array} inputs
   * @param {number} rows
   * @param {PositionOf} positionOf
   * @returns {KeyValues}
   */
  projectKeyValues(inputs, rows, positionOf) {
    const keys = this.prepare(linear(this.key, inputs, rows), this.keyHeads, positionOf);
    return { keys, values: linear(this.value, inputs, rows) };
  }

  /**
   * Project queries, as the score compares them.
   * @param {Float32Array} inputs
   * @param {number} rows
   * @param {PositionOf} positionOf
   */
  projectQueries(inputs, rows, positionOf) {
    const queries = this.prepare(linear(this.query, inputs, rows), this.heads, positionOf);
    return this.matrix ? linear(this.matrix, queries, rows * this.heads) : queries;
  }

  /** @param {Float32Array} vectors @param {number} heads @param {PositionOf} positionOf */
  prepare(vectors, heads, positionOf) {
    if (this.rotary) rotate(vectors, heads, this.headWidth, positionOf, this.rotary);
    if (this.score.compare === "cosine") normalize(vectors, this.headWidth);
    return vectors;
  }

  /**
   * Attend from every query to the keys that it may see.
   * @param {Float32Array} queries what `projectQueries` returned
   * @param {number} rows
   * @param {KeyValues} memory
   * @param {VisibleKeys} visible
   * @param {PositionOf} positionOf positions of the queries; those of keys count the visible ones
   * @returns {AttentionOutput}
   */
  attend(queries, rows, memory, visible, positionOf) {
    const { heads, headWidth } = this;
    const context = new Float32Array(rows * heads * headWidth);
    const weights = [];
    for (let row = 0; row < rows; row++) {
      const keys = visible(row);
      const rowWeights = new Float32Array(heads * keys.length);
      for (let head = 0; head < heads; head++) {
        const headWeights = rowWeights.subarray(head * keys.length, (head + 1) * keys.length);
        const start = (row * heads + head) * headWidth;
        this.scoreKeys(queries, start, head, memory.keys, keys, positionOf(row), headWeights);
        softmax(headWeights);
        this.sumValues(headWeights, head, memory.values, keys, context, start);
      }
      weights.push(rowWeights);
    }
    return { output: linear(this.out, context, rows), weights };
  }

  /**
   * Write the scores of one query and one head.
   * @param {Float32Array} queries
   * @param {number} start where the query begins
   * @param {number} head
   * @param {Float32Array} keys
   * @param {ArrayLike<number>} visible
   * @param {number} position
   * @param {Float32Array} scores
   */
  scoreKeys(queries, start, head, keys, visible, position, scores) {
    const { headWidth, score: { compare, scale, cap } } = this;
    const offset = this.keyOffset(head);
    const keyWidth = this.keyHeads * headWidth;
    const slope = this.slopes ? this.slopes[head] : 0;
    const compareAt = compare === "distance" ? halfSquaredDistance : product;
    for (let n = 0; n < visible.length; n++) {
      let score = scale * compareAt(queries, start, keys, visible[n] * keyWidth + offset, headWidth);
      if (cap !== null) score = cap * Math.tanh(score / cap);
      scores[n] = score - slope * Math.abs(position - n);
    }
  }

  /**
   * Write the weighted sum of the values of one head.
   * @param {Float32Array} weights
   * @param {number} head
   * @param {Float32Array} values
   * @param {ArrayLike<number>} visible
   * @param {Float32Array} context
   * @param {number} start
   */
  sumValues(weights, head, values, visible, context, start) {
    const { headWidth } = this;
    const offset = this.keyOffset(head);
    const valueWidth = this.keyHeads * headWidth;
    for (let i = 0; i < headWidth; i++) {
      let sum = 0;
      for (let n = 0; n < visible.length; n++) sum += weights[n] * values[visible[n] * valueWidth + offset + i];
      context[start + i] = sum;
    }
  }

  /** Where the keys and values that a query head shares with its group begin in a row. @param {number} head */
  keyOffset(head) {
    return Math.floor((head * this.keyHeads) / this.heads) * this.headWidth;
  }
}

/** @param {Float32Array} a @param {number} aStart @param {Float32Array} b @param {number} bStart @param {number} width */
function product(a, aStart, b, bStart, width) {
  let sum = 0;
  for (let i = 0; i < width; i++) sum += a[aStart + i] * b[bStart + i];
  return sum;
}

/** @param {Float32Array} a @param {number} aStart @param {Float32Array} b @param {number} bStart @param {number} width */
function halfSquaredDistance(a, aStart, b, bStart, width) {
  let sum = 0;
  for (let i = 0; i < width; i++) sum += (a[aStart + i] - b[bStart + i]) ** 2;
  return -0.5 * sum;
}

/** Divide each vector by its norm, in place. @param {Float32Array} vectors @param {number} width */
function normalize(vectors, width) {
  for (let start = 0; start < vectors.length; start += width) {
    const norm = Math.max(Math.sqrt(product(vectors, start, vectors, start, width)), MIN_NORM);
    for (let i = 0; i < width; i++) vectors[start + i] /= norm;
  }
}

/** Return the linear layer that multiplies rows by a matrix from the right. @param {Tensor} matrix @returns {Linear} */
function transposed({ shape: [inputs, outputs], values }) {
  const weight = Float32Array.from(values, (_, n) => values[(n % inputs) * outputs + Math.floor(n / inputs)]);
  return { weight, bias: null, inputs, outputs };
}
