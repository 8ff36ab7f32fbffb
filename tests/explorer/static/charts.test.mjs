import assert from "node:assert/strict";
import { test } from "node:test";

import { formatTick, linearScale, linePath, paddedExtent, ticks } from "../../../src/regard/explorer/static/axis.js";
import { formatMetric } from "../../../src/regard/explorer/static/format.js";
import { appendRecords, nearestPoint, toCharts } from "../../../src/regard/explorer/static/logSeries.js";

test("a linear scale is inverted by toValue, and centres a single value", () => {
  const axis = linearScale([-2, 2], [100, 20]);
  const rounded = [axis.toPixel(-2), axis.toPixel(0), axis.toPixel(2), axis.toValue(axis.toPixel(0.7))].map((value) => Number(value.toFixed(9)));
  assert.deepEqual(rounded, [100, 60, 20, 0.7]);
  assert.equal(linearScale([3, 3], [0, 10]).toPixel(3), 5);
});

test("ticks are round and within their range", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.12, 0.31, 4), [0.15, 0.2, 0.25, 0.3]);
  assert.deepEqual(ticks(5, 5), [5]);
  for (const [min, max] of [[0, 1e-5], [-3, 7], [1e5, 3e6]]) {
    for (const tick of ticks(min, max)) assert.ok(tick >= min - 1e-9 && tick <= max + 1e-9);
  }
});

test("tick labels have the decimals that their step needs", () => {
  assert.deepEqual([0, 0.5, -1].map((tick) => formatTick(tick, [0, 0.5])), ["0.0", "0.5", "−1.0"]);
  assert.equal(formatTick(1500, [1000, 1500]), "1,500");
});

test("all tick labels of an axis are in thousands if one is 10,000 or more", () => {
  const all = [0, 5000, 10_000, 25_000];
  assert.deepEqual(all.map((tick) => formatTick(tick, all)), ["0", "5k", "10k", "25k"]);
});

test("a metric has four significant digits and thousands separators", () => {
  assert.deepEqual([7328.4, 0.0012345678, 0.1172, 0, -2.5].map(formatMetric), ["7,328", "0.001235", "0.1172", "0", "−2.5"]);
});

test("the extent is padded and ignores what is not finite", () => {
  const [min, max] = paddedExtent([1, 3, NaN, null]);
  assert.ok(min < 1 && max > 3 && max < 3.5);
  assert.deepEqual(paddedExtent([]), [0, 1]);
});

test("a line is interrupted where a point is missing", () => {
  assert.equal(linePath([[0, 1], [2, 3], null, [4, 5]]), "M0.0 1.0L2.0 3.0M4.0 5.0");
});

test("losses share a chart, other metrics have their own, and speed comes from the time stamps", () => {
  const records = [
    { step: 10, epoch: 1, seconds: 5, train_loss: 2, valid_loss: 3, learning_rate: 0.1 },
    { step: 30, epoch: 2, seconds: 10, train_loss: 1, valid_loss: null, bleu: 40, tokens_per_second: 900, note: "text" },
    { seconds: 11, valid_loss: 0 }, // without a step it cannot be drawn
  ];
  const charts = Object.fromEntries(toCharts(records).map(({ name, series }) => [name, Object.fromEntries(series.map((one) => [one.name, one.points]))]));
  assert.deepEqual(charts, {
    loss: { train_loss: [[10, 2], [30, 1]], valid_loss: [[10, 3]] },
    learning_rate: { learning_rate: [[10, 0.1]] },
    quality: { bleu: [[30, 40]] },
    tokens_per_second: { tokens_per_second: [[30, 900]] },
    speed: { speed: [[10, 2], [30, 4]] },
  });
  assert.deepEqual(toCharts([]), []);
});

test("speed is not measured from the last log line to a validation just after it", () => {
  const records = [{ step: 10, seconds: 5, loss: 3 }, { step: 20, seconds: 10, loss: 2 }, { step: 21, seconds: 15, valid_loss: 2 }];
  assert.deepEqual(toCharts(records).at(-1), { name: "speed", series: [{ name: "speed", points: [[10, 2], [20, 2]] }] });
});

test("of two series of the training loss the finer one is shown", () => {
  const records = [1, 2, 3].map((step) => ({ step, loss: step })).concat({ step: 3, train_loss: 2, valid_loss: 2 });
  assert.deepEqual(toCharts(records)[0].series.map(({ name }) => name), ["loss", "valid_loss"]);
});

test("new records are appended, and a restarted log replaces the old one", () => {
  const [a, b, c] = [{ step: 1 }, { step: 2 }, { step: 3 }];
  assert.deepEqual(appendRecords([], 0, { records: [a, b], next_offset: 20 }), [a, b]);
  assert.deepEqual(appendRecords([a, b], 20, { records: [c], next_offset: 30 }), [a, b, c]);
  assert.deepEqual(appendRecords([a, b], 20, { records: [], next_offset: 20 }), [a, b]);
  assert.deepEqual(appendRecords([a, b], 20, { records: [a], next_offset: 10 }), [a]);
});

test("the nearest point of a series is found", () => {
  assert.deepEqual(nearestPoint({ points: [[1, 9], [5, 8], [9, 7]] }, 6.5), [5, 8]);
});
