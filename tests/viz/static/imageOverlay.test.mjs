/** Attention over an image: layout, what is under the pointer, weights of patches, and limits of files. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { createHeadView } from "../../../src/regard/viz/static/headView.js";
import { drawImageOverlay, firstListed, hitImage, layoutImage, patchWeights } from "../../../src/regard/viz/static/imageOverlay.js";
import { parseTrace } from "../../../src/regard/viz/static/trace.js";

const record = JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url), "utf8"));
const SIZE = { width: 600, height: 400 };
const NOTHING = { query: null, key: null };

function open(mapIndex) {
  const trace = parseTrace(record);
  const map = trace.maps[mapIndex];
  const view = createHeadView(trace, map, 0);
  const image = trace.images.source;
  return { image, view, layout: layoutImage(SIZE, view, image, map.queries === map.keys) };
}

test("the image of the fixture has its pixels, in colour and in grey", () => {
  const { image } = open(2);
  assert.deepEqual([image.width, image.height, image.grid, image.first], [6, 4, [2, 2], 0]);
  assert.deepEqual([...image.pixels.slice(0, 8)], [0, 1, 2, 255, 3, 4, 5, 255]);
  assert.deepEqual([...image.grey.slice(4, 8)], [4, 4, 4, 255]);
});

test("the image keeps its proportions and leaves space for the list and the scale", () => {
  const { layout } = open(2);
  assert.equal(layout.width / layout.height, 1.5);
  assert.ok(layout.left >= layout.list.width && layout.left + layout.width <= SIZE.width);
  assert.ok(layout.top + layout.height < SIZE.height - 30);
});

test("a patch is a key of cross-attention, and a query of self-attention", () => {
  const [cross, own] = [open(2), open(0)];
  const at = ({ left, top, width, height }) => [left + 0.75 * width, top + 0.25 * height];
  assert.deepEqual(hitImage(cross.layout, cross.view, ...at(cross.layout), { query: 2, key: null }), { query: 2, key: 1 });
  assert.deepEqual(hitImage(own.layout, own.view, ...at(own.layout), NOTHING), { query: 1, key: null });
  assert.equal(hitImage(own.layout, own.view, SIZE.width - 1, SIZE.height - 1, NOTHING), null);
});

test("the list beside the image selects queries, and its pages do not move under the pointer", () => {
  const { layout, view } = open(2);
  assert.deepEqual(hitImage(layout, view, 10, 8 + 2.5 * layout.list.rowHeight, NOTHING), { query: 2, key: null });
  assert.equal(hitImage(layout, view, 10, 8 + 4.5 * layout.list.rowHeight, NOTHING), null);
  const short = { ...layout, list: { ...layout.list, rows: 3 } };
  assert.deepEqual([0, 2, 3].map((query) => firstListed(short, query)), [0, 0, 3]);
  assert.deepEqual(hitImage(short, view, 10, 10, { query: 3, key: null }), { query: 3, key: null });
  assert.equal(hitImage(short, view, 10, 10 + layout.list.rowHeight, { query: 3, key: null }), null);
});

test("weights are those of the selected query, or the mean of all", () => {
  const { image, view } = open(2);
  const row = patchWeights(image, view, 1);
  assert.deepEqual(row.map((_, n) => row[n] === Math.max(...row)), [false, true, false, false]);
  const mean = patchWeights(image, view, null);
  const expected = [0, 1, 2, 3].reduce((sum, query) => sum + view.at(query, 2), 0) / 4;
  assert.ok(Math.abs(mean[2] - expected) < 1e-9);
});

test("an image that claims what it cannot hold is refused", () => {
  const image = record.images.source;
  for (const [change, message] of [
    [{ height: 1e9 }, /from 1 to 512/],
    [{ grid: [2, 0] }, /from 1 to 512/],
    [{ grid: 3 }, /from 1 to 512/],
    [{ first: 2 }, /no more patches than its token list/],
    [{ data: "AAAA" }, /must hold 72 bytes/],
  ]) {
    assert.throws(() => parseTrace({ ...record, images: { source: { ...image, ...change } } }), message);
  }
  assert.throws(() => parseTrace({ ...record, images: { other: image } }), /no more patches than its token list/);
});

test("the label of the scale is below it where it does not fit beside it", () => {
  const { image, view } = open(2);
  const texts = { meanOfQueries: "mean weight of all queries", weight: "weight" };
  const written = (width) => {
    const lines = [];
    const renderer = { image() {}, rect() {}, text: (text, x, y) => lines.push({ text, x, y }) };
    const layout = layoutImage({ width, height: 400 }, view, image, false);
    drawImageOverlay(renderer, view, layout, { opacity: 0.6, selection: NOTHING, theme: {}, texts });
    return lines.slice(-3);
  };
  const [, beside] = written(800).slice(-2);
  assert.match(beside.text, /^[\d.]+ mean weight of all queries$/);
  const [, end, below] = written(358);
  assert.match(end.text, /^[\d.]+$/);
  assert.equal(below.text, texts.meanOfQueries);
  assert.ok(below.y > end.y && below.x + 7 * below.text.length < 358 && below.y < 400);
});
