import assert from "node:assert/strict";
import { test } from "node:test";

import { CHINESE } from "../../../src/regard/explorer/static/locales/zh.js";
import { difference, differences, diverging, obstacle } from "../../../src/regard/explorer/static/difference.js";
import { ENGLISH } from "../../../src/regard/explorer/static/locales/en.js";
import { path, range, scale, ticks, tickText } from "../../../src/regard/explorer/static/axis.js";
import { charts, joined, nearest } from "../../../src/regard/explorer/static/logSeries.js";
import { doubt, segments } from "../../../src/regard/explorer/static/confidence.js";

test("all is said in both languages, by a text of the same kind", () => {
  const kinds = (texts, at = "") => Object.entries(texts).flatMap(([name, text]) => {
    const place = `${at}${name}`;
    if (place === "playground.scoreNames") return []; // English has the names as they are
    return typeof text === "object" && !Array.isArray(text) ? kinds(text, `${place}.`) : [`${place} ${typeof text} ${text.length}`.replace(/(string) \d+/, "$1")];
  });
  assert.deepEqual(kinds(CHINESE), kinds(ENGLISH));
});

test("a translation is cut into its words and what is between them, and loses nothing", () => {
  const text = "L'homme dort, où ?";
  const words = ["L'", "homme", "dort", ",", "où", "?"].map((word, n) => ({ text: word, probability: n / 10 }));
  const parts = segments(text, words);
  assert.equal(parts.map((part) => part.text).join(""), text);
  assert.deepEqual(parts.filter(({ probability }) => probability !== null).map((part) => part.text), words.map((word) => word.text));
  assert.deepEqual(segments("猫坐", [{ text: "狗", probability: 1 }]), [{ text: "猫坐", probability: null }]);
  assert.deepEqual(segments("a a", [{ text: "a", probability: 0.1 }, { text: "a", probability: 0.9 }]).map((part) => part.probability), [0.1, null, 0.9]);
});

test("sure words are not marked, and doubt grows", () => {
  assert.equal(doubt(0.9), 0);
  const marks = [0.8, 0.6, 0.3, 0.05, 0].map(doubt);
  assert.deepEqual([...marks].sort((a, b) => a - b), marks);
  assert.equal(marks.at(-1), 1);
});

test("a scale goes there and back, and one of a single number stays on the paper", () => {
  const up = scale([-2, 2], [100, 20]);
  assert.deepEqual([up.to(-2), up.to(0), up.to(2), up.from(up.to(0.7))].map((value) => Number(value.toFixed(9))), [100, 60, 20, 0.7]);
  assert.equal(scale([3, 3], [0, 10]).to(3), 5);
});

test("ticks are round and within their range", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.12, 0.31, 4), [0.15, 0.2, 0.25, 0.3]);
  assert.deepEqual(ticks(5, 5), [5]);
  for (const [least, most] of [[0, 1e-5], [-3, 7], [1e5, 3e6]]) {
    for (const tick of ticks(least, most)) assert.ok(tick >= least - 1e-9 && tick <= most + 1e-9);
  }
  assert.deepEqual([0, 0.5, -1].map((tick) => tickText(tick, [0, 0.5])), ["0.0", "0.5", "−1.0"]);
  assert.equal(tickText(25_000, [0, 25_000]), "25k");
  const [least, most] = range([1, 3, NaN, null]);
  assert.ok(least < 1 && most > 3 && most < 3.5);
  assert.deepEqual(range([]), [0, 1]);
});

test("a line breaks where a point is missing", () => {
  assert.equal(path([[0, 1], [2, 3], null, [4, 5]]), "M0.0 1.0L2.0 3.0M4.0 5.0");
});

test("a log becomes charts: losses together, other figures alone, the speed by its clock", () => {
  const records = [
    { step: 10, epoch: 1, seconds: 5, train_loss: 2, valid_loss: 3, learning_rate: 0.1 },
    { step: 30, epoch: 2, seconds: 10, train_loss: 1, valid_loss: null, bleu: 40, tokens_per_second: 900, note: "text" },
    { seconds: 11, valid_loss: 0 }, // without a step it has no place
  ];
  const found = Object.fromEntries(charts(records).map(({ name, curves }) => [name, Object.fromEntries(curves.map((curve) => [curve.name, curve.points]))]));
  assert.deepEqual(found, {
    loss: { train_loss: [[10, 2], [30, 1]], valid_loss: [[10, 3]] },
    learning_rate: { learning_rate: [[10, 0.1]] },
    quality: { bleu: [[30, 40]] },
    tokens_per_second: { tokens_per_second: [[30, 900]] },
    speed: { speed: [[10, 2], [30, 4]] },
  });
  assert.deepEqual(charts([]), []);
  const finer = [1, 2, 3].map((step) => ({ step, loss: step })).concat({ step: 3, train_loss: 2, valid_loss: 2 });
  assert.deepEqual(charts(finer)[0].curves.map(({ name }) => name), ["loss", "valid_loss"]);
});

test("lines join as they come, and a log that begins anew is a new one", () => {
  const [a, b, c] = [{ step: 1 }, { step: 2 }, { step: 3 }];
  assert.deepEqual(joined([], 0, { records: [a, b], next_offset: 20 }), [a, b]);
  assert.deepEqual(joined([a, b], 20, { records: [c], next_offset: 30 }), [a, b, c]);
  assert.deepEqual(joined([a, b], 20, { records: [], next_offset: 20 }), [a, b]);
  assert.deepEqual(joined([a, b], 20, { records: [a], next_offset: 10 }), [a]);
  assert.deepEqual(nearest({ points: [[1, 9], [5, 8], [9, 7]] }, 6.5), [5, 8]);
});

const view = (weights, words = "xyz") => ({
  queries: weights.map((_, n) => ({ text: words[n] })),
  keys: weights[0].map((_, n) => ({ text: words[n] })),
  at: (query, key) => weights[query][key],
  whole: true,
  step: 1e-5,
});

test("a difference is the other minus the one, and names both words where they differ", () => {
  const between = difference(view([[1, 0], [0.5, 0.5]]), view([[0, 1], [0.5, 0.5]], "xw"));
  assert.deepEqual([between.at(0, 0), between.at(0, 1), between.at(1, 1)], [-1, 1, 0]);
  assert.deepEqual([between.maximum, between.moved], [1, 0.5]); // one of two queries moved all its weight
  assert.deepEqual(between.queries.map(({ text }) => text), ["x", "y│w"]);
  assert.deepEqual([...between.raster({ top: 0, left: 0, bottom: 2, right: 2 }, 1, 2)], [-1, 1]);
});

test("what cannot be subtracted is known by its reason", () => {
  assert.equal(obstacle(view([[1, 0]]), view([[1, 0]])), null);
  assert.equal(obstacle(view([[1, 0]]), view([[1], [1]])), "size");
  assert.equal(obstacle(view([[1, 0]]), { ...view([[1, 0]]), whole: false }), "reduced");
});

test("less and more have colours of their own, and nothing is the paper's", () => {
  for (const theme of ["light", "dark"]) {
    const [less, even, more] = [-1, 0, 1].map((share) => diverging(share, theme));
    assert.ok(less[0] > less[2] && more[2] > more[0]); // orange, blue
    assert.ok(Math.max(...even) - Math.min(...even) < 20); // grey
    assert.deepEqual([...differences(theme).pixels([0.5], 0.5)], [...more, 255]);
  }
  assert.deepEqual([0.5, -0.25, 0.001].map((value) => differences("light").number(value)), ["+.50", "−.25", "0"]);
});
