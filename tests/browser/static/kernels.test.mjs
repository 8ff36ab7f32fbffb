import assert from "node:assert/strict";
import { test } from "node:test";

import { createLinear, erf, layerNorm, linear, logSumExp, softmax } from "../../../src/regard/browser/static/kernels.js";
import { KVCache } from "../../../src/regard/browser/static/kvCache.js";
import { decodeTensors } from "../../../src/regard/browser/static/parameters.js";

const assertClose = (a, b, tolerance = 1e-6) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not close to ${b}`);
const numbers = (count, step = 0.37) => Float32Array.from({ length: count }, (_, n) => Math.sin(n * step));

test("a linear layer gives the same rows however many there are, of any width", () => {
  for (const [rows, inputs, outputs] of [[1, 3, 5], [4, 5, 4], [7, 2, 9], [9, 6, 1]]) {
    const [weight, bias, input] = [numbers(outputs * inputs), numbers(outputs, 0.9), numbers(rows * inputs, 1.3)];
    const layer = createLinear({ shape: [outputs, inputs], values: weight }, { shape: [outputs], values: bias });
    const output = linear(layer, input, rows);
    for (let row = 0; row < rows; row++) {
      for (let o = 0; o < outputs; o++) {
        let sum = bias[o];
        for (let i = 0; i < inputs; i++) sum += weight[o * inputs + i] * input[row * inputs + i];
        assertClose(output[row * outputs + o], sum);
      }
    }
  }
});

test("layer norm gives mean 0 and variance 1 before its scale and shift", () => {
  const output = layerNorm({ weight: new Float32Array([2, 2, 2]), bias: new Float32Array([1, 1, 1]), eps: 0 }, new Float32Array([1, 2, 6, 5, 5, 8]));
  for (const row of [output.subarray(0, 3), output.subarray(3)]) {
    assertClose(row.reduce((sum, x) => sum + x, 0) / 3, 1);
    assertClose(row.reduce((sum, x) => sum + (x - 1) ** 2, 0) / 3, 4, 1e-5);
  }
});

test("softmax and log-sum-exp do not overflow", () => {
  const scores = Float32Array.from([1000, 1000, -1000]);
  assertClose(logSumExp(scores), 1000 + Math.log(2), 1e-9);
  softmax(scores);
  assert.deepEqual([...scores], [0.5, 0.5, 0]);
});

test("the error function has its known values", () => {
  const known = { 0: 0, 0.5: 0.5204998778130465, 1: 0.8427007929497149, 2: 0.9953222650189527, 4: 0.9999999845827421, 9: 1 };
  for (const [x, value] of Object.entries(known)) {
    assertClose(erf(Number(x)), value, 1e-14);
    assertClose(erf(-Number(x)), -value, 1e-14);
  }
});

test("a cache keeps its rows when it grows", () => {
  const cache = new KVCache(2, 3);
  for (let row = 0; row < 300; row++) cache.write({ keys: Float32Array.of(row, row + 0.5), values: Float32Array.of(2 * row, 1, row) }, row);
  for (let row = 0; row < 300; row++) assert.deepEqual([...cache.keys.subarray(2 * row, 2 * row + 2)], [row, row + 0.5]);
  assert.equal(cache.values[3 * 299], 598);
});

test("half precision is decoded exactly, subnormal numbers too", () => {
  const halves = { 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 2 ** -24, 0x83ff: -1023 * 2 ** -24, 0x0400: 2 ** -14, 0x3555: 0.333251953125 };
  const buffer = Uint16Array.from(Object.keys(halves), Number).buffer;
  const [{ values }] = decodeTensors([{ shape: [7], dtype: "float16", offset: 0 }], buffer);
  assert.deepEqual([...values].map(String).sort(), Object.values(halves).map(String).sort());
});

test("int8 rows have their own scales", () => {
  const bytes = new Uint8Array(8 + 6);
  bytes.set(new Uint8Array(Float32Array.of(0.5, 2).buffer));
  bytes.set(new Uint8Array(Int8Array.of(-127, 0, 4, 1, 2, -3).buffer), 8);
  const [{ values }] = decodeTensors([{ shape: [2, 3], dtype: "int8", offset: 0 }], bytes.buffer);
  assert.deepEqual([...values], [-63.5, 0, 2, 2, 4, -6]);
});
