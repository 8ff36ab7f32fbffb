import assert from "node:assert/strict";
import { test } from "node:test";

import * as attention from "../../../src/regard/explorer/static/attentionState.js";
import { formatNumber, formatSubscript, formatVector } from "../../../src/regard/explorer/static/format.js";
import { formulaOfCell } from "../../../src/regard/explorer/static/formula.js";
import * as regression from "../../../src/regard/explorer/static/regressionState.js";
import { formatHash, parseHash } from "../../../src/regard/explorer/static/urlState.js";

const known = {
  scores: ["dot", "scaled_dot", "gaussian"],
  masks: ["none", "causal", "window", "lengths", "cells"],
  positions: ["none", "rotary"],
};
const throughUrl = (params) => parseHash(formatHash("playground", params)).params;

test("an attention state is restored from the URL", () => {
  let state = attention.setWords(attention.defaultState("en"), ["a", "b", "c"]);
  state = attention.moveVector({ ...state, score: "gaussian", temperature: 0.5, bandwidth: 2, positions: "rotary" }, "keys", 1, [0.123, -9]);
  state = attention.toggleCell(state, state.cells, 0, 2);
  assert.deepEqual(attention.fromParams(throughUrl(attention.toParams(state, "en")), "en", known), state);
  assert.deepEqual(throughUrl(attention.toParams(attention.defaultState("zh"), "zh")), {});
});

test("invalid parameters give the default state", () => {
  const invalid = { words: " , ,", q: "1,2;x", k: "1;2;3", v: "9e9,1", score: "<b>", temperature: "-5", bandwidth: "a", mask: "??", cells: "12;", positions: "up" };
  const state = attention.fromParams(invalid, "en", known);
  assert.deepEqual({ ...state, temperature: 1 }, attention.defaultState("en"));
  assert.equal(state.temperature, attention.TEMPERATURE_RANGE[0]);
});

test("words are split at commas and spaces of any script, and limited in number and length", () => {
  assert.deepEqual(attention.parseWords(" the  cat,sat，on、the\u3000mat "), ["the", "cat", "sat", "on", "the", "mat"]);
  assert.equal(attention.parseWords("a b c d e f g h i j").length, 8);
  assert.equal([...attention.parseWords("猫".repeat(40))[0]].length, 16);
});

test("vectors stay in the plane, and stay when words are added", () => {
  const state = attention.moveVector(attention.defaultState("en"), "queries", 0, [-0.333, 99]);
  assert.deepEqual(state.queries[0], [-0.33, attention.MAX_COORDINATE]);
  const longer = attention.setWords(state, ["x", "y", "z", "u", "v", "w", "q"]);
  assert.deepEqual(longer.queries.slice(0, 5), state.queries);
  assert.equal(longer.queries.length, 7);
  assert.deepEqual(longer.cells.map((row) => row.length), Array(7).fill(7));
});

test("toggling a cell turns any mask into a custom one", () => {
  const causal = { ...attention.setWords(attention.defaultState("en"), ["a", "b"]), mask: "causal" };
  const custom = attention.toggleCell(causal, [[true, false], [true, true]], 1, 0);
  assert.deepEqual(attention.toRequest(custom).mask, { kind: "cells", cells: [[true, false], [false, true]] });
  assert.deepEqual(attention.toRequest(causal).mask, { kind: "causal" });
  assert.deepEqual(attention.toRequest({ ...causal, mask: "window", windowSize: 2 }).mask, { kind: "window", size: 2 });
  assert.deepEqual(attention.toRequest({ ...causal, mask: "lengths", length: 1 }).mask, { kind: "lengths", lengths: [1] });
});

/** Softmax attention of two queries and two keys, computed here. */
function attend(name, score, parameters = {}, mask = [[true, true], [true, true]]) {
  const [queries, keys, values] = [[[1, 2], [0, -1]], [[0.5, -1], [2, 0.25]], [[1, 0], [0, 1]]];
  const scores = queries.map((q) => keys.map((k) => score(q, k)));
  const { temperature = 1, slope = 0 } = parameters;
  const biased_scores = scores.map((row, i) => row.map((s, j) => s / temperature - slope * Math.abs(i - j)));
  const weights = biased_scores.map((row, i) => {
    const exponentials = row.map((s, j) => (mask[i][j] ? Math.exp(s) : 0));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    return exponentials.map((e) => (sum ? e / sum : 0));
  });
  const context = weights.map((row) => [0, 1].map((d) => row.reduce((sum, w, n) => sum + w * values[n][d], 0)));
  return [{ queries, keys, scores, mask, biased_scores, weights, context, formula: { name, parameters } }, values];
}

const dot = (q, k) => q[0] * k[0] + q[1] * k[1];
/** Evaluate what stands between two equals signs. */
const evaluate = (text) => Function(`return ${text.replaceAll("−", "-").replaceAll("·", "*").replaceAll("²", "**2").replace(/e\^(-?[\d.]+)/g, "Math.exp($1)")}`)();
const result = (text) => Number(text.split(" = ").at(-1).replace("−", "-"));

test("the numbers of a formula evaluate to its result", () => {
  for (const [name, score] of [
    ["dot", dot],
    ["scaled_dot", (q, k) => dot(q, k) / Math.SQRT2],
    ["cosine", (q, k) => dot(q, k) / Math.hypot(...q) / Math.hypot(...k)],
    ["gaussian", (q, k) => -((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2) / 2],
  ]) {
    const [response, values] = attend(name, score);
    for (const [query, key] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
      const lines = Object.fromEntries(formulaOfCell(response, values, query, key).map(({ step, text }) => [step, text]));
      const [symbolic, numeric] = lines.score.split(" = ");
      assert.match(symbolic, new RegExp(`q${formatSubscript(query + 1)}.*k${formatSubscript(key + 1)}`));
      assert.ok(Math.abs(evaluate(numeric.replace(/^−\(/, "-1*(")) - response.scores[query][key]) < 0.02, lines.score);
      assert.ok(Math.abs(result(lines.score) - response.scores[query][key]) <= 0.0051);
      assert.ok(Math.abs(evaluate(lines.weight.split(" = ")[0]) - response.weights[query][key]) < 0.01, lines.weight);
      assert.ok(Math.abs(result(lines.weight) - response.weights[query][key]) <= 0.00051);
      assert.ok(lines.context.endsWith(`= ${formatVector(response.context[query])}`));
      assert.equal("adjusted" in lines, false);
    }
  }
});

test("parametric scores show their projections, and kernels their distance", () => {
  const [W, U, v] = [[[1, 0], [0.5, 2]], [[0, 1], [1, 0]], [0.3, -1]];
  const multiply = (m, x) => m.map((row) => dot(row, x));
  const additive = (q, k) => dot(v, multiply(W, q).map((a, n) => Math.tanh(a + multiply(U, k)[n])));
  const scoreLine = (name, score, parameters) => formulaOfCell(...attend(name, score, parameters), 0, 1)[0].text;
  assert.equal(scoreLine("bilinear", (q, k) => dot(q, multiply(W, k)), { W }), "q₁·W k₂ = (1.00, 2.00)·(2.00, 1.50) = 5.00");
  assert.equal(scoreLine("additive", additive, { W, U, v }), `v·tanh(W q₁ + U k₂) = (0.30, −1.00)·tanh(1.25, 6.50) = ${formatNumber(additive([1, 2], [2, 0.25]))}`);
  assert.match(scoreLine("triangular", () => null, { bandwidth: 0.5 }), /= log \(1 − 4\.03\) = −∞$/);
});

test("temperature, positional bias and mask have lines of their own", () => {
  const mask = [[true, false], [false, false]];
  const [response, values] = attend("dot", dot, { temperature: 0.5, slope: 0.5 }, mask);
  const lineOf = (query, key, step) => formulaOfCell(response, values, query, key).find((line) => line.step === step)?.text;
  assert.equal(lineOf(0, 1, "adjusted"), "2.50 / 0.50 − 0.50·1 = 4.50");
  assert.equal(lineOf(0, 1, "masked"), "e^−∞ = 0");
  assert.match(lineOf(0, 1, "weight"), /^0 \/ \(e\^[^+]*\) = 0\.000$/);
  assert.equal(lineOf(1, 1, "weight"), "0"); // a fully masked query
  assert.equal(lineOf(1, 1, "context"), "0 = (0.00, 0.00)");
});

test("points are moved, added and removed within the plot and its limits, and restored from the URL", () => {
  const kernels = ["gaussian", "boxcar"];
  const initial = regression.fromParams({}, kernels);
  const moved = regression.movePoint({ ...initial, kernel: "boxcar", bandwidth: 1.5, x: 3.25 }, 2, [99, -99]);
  assert.deepEqual(moved.points[2], [regression.X_RANGE[1], regression.Y_RANGE[0]]);
  assert.deepEqual(regression.fromParams(throughUrl(regression.toParams(moved)), kernels), moved);
  assert.deepEqual(throughUrl(regression.toParams(initial)), {});
  let many = initial;
  for (let n = 0; n < 40; n++) many = regression.addPoint(many, [n / 8, 0]);
  assert.equal(many.points.length, regression.MAX_POINTS);
  let few = initial;
  for (let n = 0; n < 40; n++) few = regression.removePoint(few, 0);
  assert.deepEqual(few.points, [initial.points.at(-1)]);
  assert.deepEqual(regression.fromParams({ points: "1,2;oops", kernel: "x", kernel_bandwidth: "-1" }, kernels).points, initial.points);
});

test("the prediction is the context, and missing where no point has weight", () => {
  const state = regression.fromParams({}, ["gaussian"]);
  const request = regression.toRequest(state);
  assert.deepEqual(request.queries.at(-1), [state.x]);
  const weights = request.queries.map((_, n) => (n % 2 ? state.points.map(() => 0) : state.points.map((_, k) => (k ? 0 : 1))));
  const { curve, weights: weightsAtX, y } = regression.parsePrediction({ weights, context: request.queries.map((_, n) => [n]) });
  assert.equal(curve.length, request.queries.length - 1);
  assert.deepEqual([curve[0], curve[1], curve[2][1]], [[0, 0], null, 2]);
  assert.deepEqual([weightsAtX, y], [weights.at(-1), null]); // no point has weight at the last query
});
