/** Numeric kernels over rows of float32: linear layers, layer norm, softmax, activations. Sums are taken in float64. */

/**
 * @import { Tensor } from "./parameters.js"
 * @typedef {{weight: Float32Array, bias: Float32Array|null, inputs: number, outputs: number}} Linear
 * @typedef {{weight: Float32Array, bias: Float32Array|null, eps: number}} Norm
 */

/**
 * Return the linear layer of a weight (output, input) and a bias.
 * @param {Tensor} weight
 * @param {Tensor|null} bias
 * @returns {Linear}
 */
export function createLinear({ shape: [outputs, inputs], values }, bias) {
  return { weight: values, bias: bias && bias.values, inputs, outputs };
}

/**
 * Apply a linear layer to some rows. Several dot products run at a time, so that what is read is used more than once:
 * of four rows and two outputs, or of four outputs for the rows that are left.
 * @param {Linear} layer
 * @param {Float32Array} input
 * @param {number} rows
 */
export function linear({ weight, bias, inputs, outputs }, input, rows) {
  const output = new Float32Array(rows * outputs);
  let row = 0;
  for (; row + 4 <= rows; row += 4) multiplyFourRows(weight, inputs, outputs, input, row, output);
  for (; row < rows; row++) multiplyRow(weight, inputs, outputs, input, row, output);
  if (bias) {
    for (let n = 0, at = 0; n < rows; n++) for (let o = 0; o < outputs; o++) output[at++] += bias[o];
  }
  return output;
}

/**
 * @param {Float32Array} weight
 * @param {number} inputs
 * @param {number} outputs
 * @param {Float32Array} input
 * @param {number} row
 * @param {Float32Array} output
 */
function multiplyFourRows(weight, inputs, outputs, input, row, output) {
  const first = row * inputs;
  const [second, third, fourth] = [first + inputs, first + 2 * inputs, first + 3 * inputs];
  for (let o = 0; o < outputs; o += 2) {
    const p = Math.min(o + 1, outputs - 1); // of an odd number, the last output is computed twice
    const atO = o * inputs;
    const atP = p * inputs;
    let o1 = 0, o2 = 0, o3 = 0, o4 = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0; // no arrays: the engine keeps these in registers
    for (let i = 0; i < inputs; i++) {
      const v = weight[atO + i];
      const w = weight[atP + i];
      const x1 = input[first + i];
      const x2 = input[second + i];
      const x3 = input[third + i];
      const x4 = input[fourth + i];
      o1 += v * x1;
      o2 += v * x2;
      o3 += v * x3;
      o4 += v * x4;
      p1 += w * x1;
      p2 += w * x2;
      p3 += w * x3;
      p4 += w * x4;
    }
    const to = row * outputs;
    output[to + o] = o1;
    output[to + outputs + o] = o2;
    output[to + 2 * outputs + o] = o3;
    output[to + 3 * outputs + o] = o4;
    output[to + p] = p1;
    output[to + outputs + p] = p2;
    output[to + 2 * outputs + p] = p3;
    output[to + 3 * outputs + p] = p4;
  }
}

/**
 * @param {Float32Array} weight
 * @param {number} inputs
 * @param {number} outputs
 * @param {Float32Array} input
 * @param {number} row
 * @param {Float32Array} output
 */
function multiplyRow(weight, inputs, outputs, input, row, output) {
  const from = row * inputs;
  const to = row * outputs;
  let o = 0;
  for (; o + 4 <= outputs; o += 4) {
    const first = o * inputs;
    const [second, third, fourth] = [first + inputs, first + 2 * inputs, first + 3 * inputs];
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let i = 0; i < inputs; i++) {
      const x = input[from + i];
      a += x * weight[first + i];
      b += x * weight[second + i];
      c += x * weight[third + i];
      d += x * weight[fourth + i];
    }
    output[to + o] = a;
    output[to + o + 1] = b;
    output[to + o + 2] = c;
    output[to + o + 3] = d;
  }
  for (; o < outputs; o++) {
    let sum = 0;
    for (let i = 0; i < inputs; i++) sum += input[from + i] * weight[o * inputs + i];
    output[to + o] = sum;
  }
}

/**
 * Normalise each row to mean 0 and variance 1, then scale and shift it.
 * @param {Norm} norm
 * @param {Float32Array} input
 */
export function layerNorm({ weight, bias, eps }, input) {
  const width = weight.length;
  const output = new Float32Array(input.length);
  for (let start = 0; start < input.length; start += width) {
    let mean = 0;
    for (let i = 0; i < width; i++) mean += input[start + i];
    mean /= width;
    let variance = 0;
    for (let i = 0; i < width; i++) variance += (input[start + i] - mean) ** 2;
    const factor = 1 / Math.sqrt(variance / width + eps);
    for (let i = 0; i < width; i++) output[start + i] = (input[start + i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);
  }
  return output;
}

/** Return the sum of two arrays. @param {Float32Array} a @param {Float32Array} b */
export function add(a, b) {
  const sum = new Float32Array(a.length);
  for (let n = 0; n < sum.length; n++) sum[n] = a[n] + b[n];
  return sum;
}

/**
 * Replace scores by their softmax, in place.
 * @param {Float32Array} scores
 */
export function softmax(scores) {
  const largest = maximum(scores);
  let sum = 0;
  for (let n = 0; n < scores.length; n++) sum += scores[n] = Math.exp(scores[n] - largest);
  for (let n = 0; n < scores.length; n++) scores[n] /= sum;
}

/** Return log Σ exp(x). @param {Float32Array} values */
export function logSumExp(values) {
  const largest = maximum(values);
  let sum = 0;
  for (let n = 0; n < values.length; n++) sum += Math.exp(values[n] - largest);
  return largest + Math.log(sum);
}

/** @param {Float32Array} values */
function maximum(values) {
  let largest = -Infinity;
  for (let n = 0; n < values.length; n++) if (values[n] > largest) largest = values[n];
  return largest;
}

/** Activations, in place. @type {{relu: (values: Float32Array) => void, gelu: (values: Float32Array) => void}} */
export const ACTIVATIONS = {
  relu(values) {
    for (let n = 0; n < values.length; n++) if (values[n] < 0) values[n] = 0;
  },
  gelu(values) {
    for (let n = 0; n < values.length; n++) values[n] *= 0.5 * (1 + erf(values[n] * Math.SQRT1_2));
  },
};

/**
 * Return the error function, by its series of positive terms: 2x/√π · e^(-x²) · Σ (2x²)^n / (1·3·5···(2n+1)).
 * @param {number} x
 */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // 1 - erf(6) is below 1e-16
  let term = 1;
  let sum = 1;
  for (let n = 1; term > 1e-17 * sum; n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * x * Math.exp(-x * x) * sum;
}
