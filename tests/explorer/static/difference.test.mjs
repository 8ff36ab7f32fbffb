import assert from "node:assert/strict";
import { test } from "node:test";

import { differenceScale, divergingColour, incompatibility, subtractHeads } from "../../../src/regard/explorer/static/difference.js";

const viewOf = (weights, words = "xyz") => ({
  queries: weights.map((_, n) => ({ text: words[n] })),
  keys: weights[0].map((_, n) => ({ text: words[n] })),
  at: (query, key) => weights[query][key],
  isDense: true,
  step: 1e-5,
});

test("a difference is B − A, and shows both words where they differ", () => {
  const difference = subtractHeads(viewOf([[1, 0], [0.5, 0.5]]), viewOf([[0, 1], [0.5, 0.5]], "xw"));
  assert.deepEqual([difference.at(0, 0), difference.at(0, 1), difference.at(1, 1)], [-1, 1, 0]);
  assert.deepEqual([difference.maximum, difference.totalVariation], [1, 0.5]); // one of two queries moved all its weight
  assert.deepEqual(difference.queries.map(({ text }) => text), ["x", "y│w"]);
  assert.deepEqual([...difference.rasterize({ top: 0, left: 0, bottom: 2, right: 2 }, 1, 2)], [-1, 1]);
});

test("heads of different sizes, and summarised heads, are incompatible", () => {
  assert.equal(incompatibility(viewOf([[1, 0]]), viewOf([[1, 0]])), null);
  assert.equal(incompatibility(viewOf([[1, 0]]), viewOf([[1], [1]])), "size");
  assert.equal(incompatibility(viewOf([[1, 0]]), { ...viewOf([[1, 0]]), isDense: false }), "summary");
});

test("negative is orange, positive blue, and zero grey", () => {
  for (const theme of ["light", "dark"]) {
    const [negative, zero, positive] = [-1, 0, 1].map((fraction) => divergingColour(fraction, theme));
    assert.ok(negative[0] > negative[2] && positive[2] > positive[0]);
    assert.ok(Math.max(...zero) - Math.min(...zero) < 20);
    assert.deepEqual([...differenceScale(theme).toPixels([0.5], 0.5)], [...positive, 255]);
  }
});

test("differences are formatted with their sign", () => {
  assert.deepEqual([0.5, -0.25, 0.001].map((value) => differenceScale("light").format(value)), ["+.50", "−.25", "0"]);
});
