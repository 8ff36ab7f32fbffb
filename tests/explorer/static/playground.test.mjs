import assert from "node:assert/strict";
import { test } from "node:test";

import { read, write } from "../../../src/regard/explorer/static/urlState.js";
import { cellFormula } from "../../../src/regard/explorer/static/formula.js";
import { factor, low, percent, plain, vector } from "../../../src/regard/explorer/static/format.js";
import * as points from "../../../src/regard/explorer/static/regressionState.js";
import * as scene from "../../../src/regard/explorer/static/attentionState.js";

const known = {
  scores: ["dot", "scaled_dot", "gaussian"],
  masks: ["none", "causal", "window", "lengths", "cells"],
  positions: ["none", "rotary"],
};
const again = (values) => read(write({ page: "playground", values })).values;

test("numbers are short, with a true minus, and never a minus zero", () => {
  assert.deepEqual([1.234, -0.5, -0.001, null, -Infinity].map((value) => plain(value)), ["1.23", "−0.50", "0.00", "−∞", "−∞"]);
  assert.deepEqual([factor(-1), factor(1), vector([1, -2], 0), low(12)], ["(−1.00)", "1.00", "(1, −2)", "₁₂"]);
  assert.deepEqual([0, 0.001, 0.5, 0.999, 1].map(percent), ["0", "<1", "50", ">99", "100"].map((number) => `${number}\u00a0%`));
});

test("a scene in an address is found again", () => {
  let one = scene.withWords(scene.firstScene("en"), ["a", "b", "c"]);
  one = scene.moved({ ...one, score: "gaussian", temperature: 0.5, bandwidth: 2, positions: "rotary" }, "keys", 1, [0.123, -9]);
  one = scene.toggled(one, one.cells, 0, 2);
  assert.deepEqual(scene.fromValues(again(scene.toValues(one, "en")), "en", known), one);
  assert.deepEqual(again(scene.toValues(scene.firstScene("zh"), "zh")), {});
});

test("a broken address gives the first scene, whole", () => {
  const broken = { words: " , ,", q: "1,2;x", k: "1;2;3", v: "9e9,1", score: "<b>", t: "-5", width: "a", mask: "??", cells: "12;", positions: "up" };
  const read_ = scene.fromValues(broken, "en", known);
  assert.deepEqual({ ...read_, temperature: 1 }, scene.firstScene("en"));
  assert.equal(read_.temperature, scene.TEMPERATURES[0]);
});

test("words are parted by commas and spaces of any kind, eight at most", () => {
  assert.deepEqual(scene.wordsOf(" the  cat,sat，on、the\u3000mat "), ["the", "cat", "sat", "on", "the", "mat"]);
  assert.equal(scene.wordsOf("a b c d e f g h i j").length, 8);
  assert.equal([...scene.wordsOf("猫".repeat(40))[0]].length, 16);
});

test("words that stay keep their vectors; vectors stay on the paper", () => {
  const first = scene.moved(scene.firstScene("en"), "queries", 0, [-0.333, 99]);
  assert.deepEqual(first.queries[0], [-0.33, scene.REACH]);
  const more = scene.withWords(first, ["x", "y", "z", "u", "v", "w", "q"]);
  assert.deepEqual(more.queries.slice(0, 5), first.queries);
  assert.equal(more.queries.length, 7);
  assert.deepEqual(more.cells.map((row) => row.length), Array(7).fill(7));
});

test("a click makes any mask one of single cells, with that cell turned", () => {
  const causal = { ...scene.withWords(scene.firstScene("en"), ["a", "b"]), mask: "causal" };
  const turned = scene.toggled(causal, [[true, false], [true, true]], 1, 0);
  assert.deepEqual(scene.request(turned).mask, { kind: "cells", cells: [[true, false], [false, true]] });
  assert.deepEqual(scene.request(causal).mask, { kind: "causal" });
  assert.deepEqual(scene.request({ ...causal, mask: "window", size: 2 }).mask, { kind: "window", size: 2 });
  assert.deepEqual(scene.request({ ...causal, mask: "lengths", lengths: 1 }).mask, { kind: "lengths", lengths: [1] });
});

/** Softmax attention of two queries and two keys, computed here. */
function answered(name, score, parameters = {}, allowed = [[true, true], [true, true]]) {
  const [queries, keys, values] = [[[1, 2], [0, -1]], [[0.5, -1], [2, 0.25]], [[1, 0], [0, 1]]];
  const scores = queries.map((q) => keys.map((k) => score(q, k)));
  const { temperature = 1, slope = 0 } = parameters;
  const biased = scores.map((row, i) => row.map((s, j) => s / temperature - slope * Math.abs(i - j)));
  const weights = biased.map((row, i) => {
    const seen = row.map((s, j) => (allowed[i][j] ? Math.exp(s) : 0));
    const sum = seen.reduce((a, b) => a + b, 0);
    return seen.map((s) => (sum ? s / sum : 0));
  });
  const context = weights.map((row) => [0, 1].map((d) => row.reduce((sum, w, n) => sum + w * values[n][d], 0)));
  return [{ queries, keys, scores, mask: allowed, biased_scores: biased, weights, context, formula: { name, parameters } }, values];
}

const dot = (q, k) => q[0] * k[0] + q[1] * k[1];
/** Work out what stands between two = signs. */
const worked = (text) => Function(`return ${text.replaceAll("−", "-").replaceAll("·", "*").replaceAll("²", "**2").replace(/e\^(-?[\d.]+)/g, "Math.exp($1)")}`)();
const last = (text) => Number(text.split(" = ").at(-1).replace("−", "-"));

test("the numbers of a formula work out to what it says", () => {
  for (const [name, score] of [
    ["dot", dot],
    ["scaled_dot", (q, k) => dot(q, k) / Math.SQRT2],
    ["cosine", (q, k) => dot(q, k) / Math.hypot(...q) / Math.hypot(...k)],
    ["gaussian", (q, k) => -((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2) / 2],
  ]) {
    const [answer, values] = answered(name, score);
    for (const [query, key] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
      const lines = Object.fromEntries(cellFormula(answer, values, query, key).map(({ step, text }) => [step, text]));
      const [letters, numbers] = lines.score.split(" = ");
      assert.match(letters, new RegExp(`q${low(query + 1)}.*k${low(key + 1)}`));
      assert.ok(Math.abs(worked(numbers.replace(/^−\(/, "-1*(")) - answer.scores[query][key]) < 0.02, lines.score);
      assert.ok(Math.abs(last(lines.score) - answer.scores[query][key]) <= 0.0051);
      assert.ok(Math.abs(worked(lines.weight.split(" = ")[0]) - answer.weights[query][key]) < 0.01, lines.weight);
      assert.ok(Math.abs(last(lines.weight) - answer.weights[query][key]) <= 0.00051);
      assert.ok(lines.context.endsWith(`= ${vector(answer.context[query])}`));
      assert.equal("shift" in lines, false);
    }
  }
});

test("learned scores show their weights, and kernels their distance", () => {
  const [W, U, v] = [[[1, 0], [0.5, 2]], [[0, 1], [1, 0]], [0.3, -1]];
  const times = (m, x) => m.map((row) => dot(row, x));
  const additive = (q, k) => dot(v, times(W, q).map((a, n) => Math.tanh(a + times(U, k)[n])));
  const text = (name, score, parameters) => cellFormula(...answered(name, score, parameters), 0, 1)[0].text;
  assert.equal(text("bilinear", (q, k) => dot(q, times(W, k)), { W }), "q₁·W k₂ = (1.00, 2.00)·(2.00, 1.50) = 5.00");
  assert.equal(text("additive", additive, { W, U, v }), `v·tanh(W q₁ + U k₂) = (0.30, −1.00)·tanh(1.25, 6.50) = ${plain(additive([1, 2], [2, 0.25]))}`);
  assert.match(text("triangular", () => null, { bandwidth: 0.5 }), /= log \(1 − 4\.03\) = −∞$/);
});

test("temperature, bias and mask have their own line", () => {
  const allowed = [[true, false], [false, false]];
  const [answer, values] = answered("dot", dot, { temperature: 0.5, slope: 0.5 }, allowed);
  const told = (query, key) => cellFormula(answer, values, query, key);
  assert.equal(told(0, 1).find(({ step }) => step === "shift").text, "2.50 / 0.50 − 0.50·1 = 4.50");
  assert.equal(told(0, 1).some(({ step }) => step === "hidden"), true);
  assert.match(told(0, 1).find(({ step }) => step === "weight").text, /^0 \/ \(e\^[^+]*\) = 0\.000$/);
  assert.equal(told(1, 1).find(({ step }) => step === "weight").text, "0"); // a row that may look nowhere
  assert.equal(told(1, 1).at(-1).text, "0 = (0.00, 0.00)");
});

test("points are moved, added and removed, within the paper and to a number that can be read", () => {
  const kernels = ["gaussian", "boxcar"];
  const first = points.fromValues({}, kernels);
  const one = points.moved({ ...first, kernel: "boxcar", bandwidth: 1.5, x: 3.25 }, 2, [99, -99]);
  assert.deepEqual(one.points[2], [points.ACROSS[1], points.UP[0]]);
  assert.deepEqual(points.fromValues(again(points.toValues(one)), kernels), one);
  assert.deepEqual(again(points.toValues(first)), {});
  let many = first;
  for (let n = 0; n < 40; n++) many = points.added(many, [n / 8, 0]);
  assert.equal(many.points.length, points.MOST);
  let few = first;
  for (let n = 0; n < 40; n++) few = points.removed(few, 0);
  assert.deepEqual(few.points, [first.points.at(-1)]);
  assert.deepEqual(points.fromValues({ points: "1,2;oops", kernel: "x", b: "-1" }, kernels).points, first.points);
});

test("the curve is the context, and breaks where nothing is seen", () => {
  const plot = points.fromValues({}, ["gaussian"]);
  const asked = points.request(plot);
  assert.deepEqual(asked.queries.at(-1), [plot.x]);
  const weights = asked.queries.map((_, n) => (n % 2 ? plot.points.map(() => 0) : plot.points.map((_, k) => (k ? 0 : 1))));
  const { line, weights: there, height } = points.curve({ weights, context: asked.queries.map((_, n) => [n]) });
  assert.equal(line.length, asked.queries.length - 1);
  assert.deepEqual([line[0], line[1], line[2][1]], [[0, 0], null, 2]);
  assert.deepEqual([there, height], [weights.at(-1), null]); // the last query sees nothing
});
