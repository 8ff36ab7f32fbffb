/** Attention scores: how a query and a key are compared. The twin of regard.attention.scores. */
import { createLinear, linear } from "./kernels.js";

/**
 * @import { Linear } from "./kernels.js"
 * @import { Tensor } from "./parameters.js"
 * @typedef {{compare: "product"|"cosine"|"distance"|"tanh_sum", scale: number, cap: number|null,
 *   query_projection: number|null, key_projection: number|null, vector: number|null}} ScoreRecord
 * Projections and the vector of "tanh_sum" are numbers of tensors.
 */

const MIN_NORM = 1e-8; // as in regard.attention.Cosine

export class Score {
  /** @param {ScoreRecord} record @param {Tensor[]} tensors */
  constructor({ compare, scale, cap, query_projection: query, key_projection: key, vector }, tensors) {
    this.scale = scale;
    this.cap = cap;
    this.isCosine = compare === "cosine";
    this.query = query === null ? null : createLinear(tensors[query], null);
    this.key = key === null ? null : createLinear(tensors[key], null);
    this.compare = compare === "distance" ? halfSquaredDistance : product;
    if (vector !== null) this.compare = tanhSum(tensors[vector].values);
  }

  /** Return queries as they are compared. @param {Float32Array} vectors @param {number} width */
  prepareQueries(vectors, width) {
    return this.prepare(vectors, width, this.query);
  }

  /** Return keys as they are compared. @param {Float32Array} vectors @param {number} width */
  prepareKeys(vectors, width) {
    return this.prepare(vectors, width, this.key);
  }

  /** @param {Float32Array} vectors @param {number} width @param {Linear|null} projection */
  prepare(vectors, width, projection) {
    if (this.isCosine) normalize(vectors, width);
    return projection ? linear(projection, vectors, vectors.length / width) : vectors;
  }

  /**
   * Score prepared vectors of one width, which begin at two places.
   * @param {Float32Array} queries
   * @param {number} query
   * @param {Float32Array} keys
   * @param {number} key
   * @param {number} width
   */
  at(queries, query, keys, key, width) {
    const score = this.scale * this.compare(queries, query, keys, key, width);
    return this.cap === null ? score : this.cap * Math.tanh(score / this.cap);
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

/** Return the additive comparison, v·tanh(a + b). @param {Float32Array} v @returns {typeof product} */
function tanhSum(v) {
  return (a, aStart, b, bStart, width) => {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += v[i] * Math.tanh(a[aStart + i] + b[bStart + i]);
    return sum;
  };
}

/** Divide each vector by its norm, in place. @param {Float32Array} vectors @param {number} width */
function normalize(vectors, width) {
  for (let start = 0; start < vectors.length; start += width) {
    const norm = Math.max(Math.sqrt(product(vectors, start, vectors, start, width)), MIN_NORM);
    for (let i = 0; i < width; i++) vectors[start + i] /= norm;
  }
}
