import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { alignWords, strongestLinks, weightsOf } from "../../../src/regard/browser/static/alignment.js";
import { TEXTS } from "../../../src/regard/browser/static/i18n.js";

const record = JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url)));
record.maps.filter(({ kind }) => kind === "cross").forEach((map, n) => (map.name = `cross.${n}`));

const assertClose = (a, b) => assert.ok(Math.abs(a - b) < 1e-4, `${a} is not close to ${b}`);

test("weights between words sum over the tokens of a source word and average over those of a target word", () => {
  const { weights } = alignWords(record, [0, 0]);
  assert.deepEqual([weights.length, weights[0].length], [2, 3]); // 猫 坐着; The cat sits
  assertClose(weights[0][0], 9 / 13);
  assertClose(weights[1][2], 6 / 13); // 坐 has 2/13, 着 has 10/13
});

test("without a known head the weights are the mean over the last layer's heads", () => {
  const last = record.maps.filter(({ kind }) => kind === "cross").length - 1;
  const { heads } = record.maps.find(({ name }) => name === `cross.${last}`);
  const mean = alignWords(record, null);
  assert.deepEqual([mean.layer, mean.head], [last, null]);
  const single = heads.map((head) => alignWords(record, [last, head]).weights);
  mean.weights.forEach((row, i) => row.forEach((weight, j) => {
    assertClose(weight, single.reduce((sum, weights) => sum + weights[i][j], 0) / heads.length);
  }));
});

test("a trace without that map has no alignment", () => {
  assert.equal(alignWords({ ...record, maps: record.maps.filter(({ kind }) => kind !== "cross") }, null), null);
  assert.equal(alignWords(record, [7, 0]), null);
});

test("a word of either side has weights, and the strongest are named first", () => {
  const alignment = { layer: 0, head: 0, weights: [[0.05, 0.6, 0.3], [0.9, 0.02, 0.2]] };
  assert.deepEqual(weightsOf(alignment, "target", 0), [0.05, 0.6, 0.3]);
  assert.deepEqual(weightsOf(alignment, "source", 0), [0.05, 0.9]);
  assert.deepEqual(strongestLinks([0.05, 0.6, 0.3]).map(({ index }) => index), [1, 2]);
  assert.equal(strongestLinks([0.3, 0.2, 0.25, 0.15]).length, 3);
});

test("both locales have the same texts, of the same types and arities", () => {
  const signature = (texts) => Object.entries(texts).map(([name, text]) => `${name} ${typeof text} ${typeof text === "function" ? text.length : ""}`);
  assert.deepEqual(signature(TEXTS.zh), signature(TEXTS.en));
});
