/** Multi-head attention: score → softmax → weighted sum. The weights are always returned. */
import { createLinear, linear, softmax } from "./kernels.js";
import { rotate } from "./positions.js";
import { Score } from "./score.js";

/**
 * @import { Tensor } from "./parameters.js"
 * @import { RotaryRecord } from "./positions.js"
 * @import { ScoreRecord } from "./score.js"
 * @typedef {{weight: number, bias: number|null}} LinearRecord numbers of tensors
 * @typedef {{query: LinearRecord, key: LinearRecord, value: LinearRecord, out: LinearRecord, heads: number, key_heads: number,
 *   head_width: number, score: ScoreRecord, positions: RotaryRecord|{kind: "alibi", slopes: number[]}|null}} AttentionRecord
 * @typedef {{keys: Float32Array, values: Float32Array}} KeyValues one row per token
 * @typedef {(row: number) => number} PositionOf
 * @typedef {(row: number) => ArrayLike<number>} VisibleKeys which rows of the keys a query may attend to, by position
 * @typedef {{output: Float32Array, weights: Float32Array[]}} AttentionOutput weights (head, key) of every query
 */

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
    this.score = new Score(record.score, tensors);
    this.comparedWidth = this.score.key ? this.score.key.outputs : this.headWidth;
    this.rotary = record.positions?.kind === "rotary" ? record.positions : null;
    this.slopes = record.positions?.kind === "alibi" ? record.positions.slopes : null;
  }

  /**
   * Project keys and values, as the score compares them.
   * @param {Float32Array} inputs
   * @param {number} rows
   * @param {PositionOf} positionOf
   * @returns {KeyValues}
   */
  projectKeyValues(inputs, rows, positionOf) {
    const keys = this.rotate(linear(this.key, inputs, rows), this.keyHeads, positionOf);
    return { keys: this.score.prepareKeys(keys, this.headWidth), values: linear(this.value, inputs, rows) };
  }

  /**
   * Project queries, as the score compares them.
   * @param {Float32Array} inputs
   * @param {number} rows
   * @param {PositionOf} positionOf
   */
  projectQueries(inputs, rows, positionOf) {
    const queries = this.rotate(linear(this.query, inputs, rows), this.heads, positionOf);
    return this.score.prepareQueries(queries, this.headWidth);
  }

  /** @param {Float32Array} vectors @param {number} heads @param {PositionOf} positionOf */
  rotate(vectors, heads, positionOf) {
    if (this.rotary) rotate(vectors, heads, this.headWidth, positionOf, this.rotary);
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
        this.scoreKeys(queries, row, head, memory.keys, keys, positionOf(row), headWeights);
        softmax(headWeights);
        this.sumValues(headWeights, head, memory.values, keys, context, (row * heads + head) * headWidth);
      }
      weights.push(rowWeights);
    }
    return { output: linear(this.out, context, rows), weights };
  }

  /**
   * Write the scores of one query and one head.
   * @param {Float32Array} queries
   * @param {number} row
   * @param {number} head
   * @param {Float32Array} keys
   * @param {ArrayLike<number>} visible
   * @param {number} position
   * @param {Float32Array} scores
   */
  scoreKeys(queries, row, head, keys, visible, position, scores) {
    const { comparedWidth: width, score } = this;
    const query = (row * this.heads + head) * width;
    const offset = this.groupOf(head) * width;
    const slope = this.slopes ? this.slopes[head] : 0;
    for (let n = 0; n < visible.length; n++) {
      const key = visible[n] * this.keyHeads * width + offset;
      scores[n] = score.at(queries, query, keys, key, width) - slope * Math.abs(position - n);
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
    const offset = this.groupOf(head) * headWidth;
    const valueWidth = this.keyHeads * headWidth;
    for (let i = 0; i < headWidth; i++) {
      let sum = 0;
      for (let n = 0; n < visible.length; n++) sum += weights[n] * values[visible[n] * valueWidth + offset + i];
      context[start + i] = sum;
    }
  }

  /** Return the head of the keys and values that a query head shares with others. @param {number} head */
  groupOf(head) {
    return Math.floor((head * this.keyHeads) / this.heads);
  }
}
