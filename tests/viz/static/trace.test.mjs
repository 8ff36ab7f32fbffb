import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createHeadView, formatWeight } from "../../../src/regard/viz/static/headView.js";
import { TEXTS } from "../../../src/regard/viz/static/i18n.js";
import { axisNamesOf, groupMaps } from "../../../src/regard/viz/static/mapGroups.js";
import { dequantize, parseTrace } from "../../../src/regard/viz/static/trace.js";

const record = JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url)));
const trace = parseTrace(record);
const { encoder, decoder, cross } = Object.fromEntries(groupMaps(trace).map((group) => [group.name, group]));

const assertClose = (a, b, tolerance = 1e-4) => assert.ok(Math.abs(a - b) < tolerance, `${a} is not close to ${b}`);
const textsOf = (groups) => groups.map(({ text }) => text);

test("map groups have the names that Python gives them", () => {
  assert.deepEqual(groupMaps(trace).map(({ name, maps }) => [name, maps.length]), [["encoder", 1], ["decoder", 1], ["cross", 3]]);
  const map = (kind, queries) => ({ kind, queries, keys: "text" });
  const namesOf = (...maps) => groupMaps({ ...trace, tokens: { text: trace.tokens.source }, maps }).map(({ name }) => name);
  assert.deepEqual(namesOf(map("causal", "text")), ["causal"]);
  assert.deepEqual(namesOf(map("cross", "text"), map("cross", "b"), map("self", "text")), ["cross text-text", "cross b-text", "self"]);
});

test("weights are read in the order head, query, key", () => {
  for (const head of [0, 1]) {
    const view = createHeadView(trace, cross.maps[0], head);
    for (let query = 0; query < 4; query++) {
      for (let key = 0; key < 5; key++) assertClose(view.at(query, key), (key === (query + head) % 5 ? 9 : 1) / 13);
    }
  }
});

test("axis labels are those that Python shows", () => {
  const view = createHeadView(trace, cross.maps[0], 0);
  assert.deepEqual(textsOf(view.queries), ["猫", "坐", "着", "</s>"]);
  assert.deepEqual(textsOf(view.keys), ["The", "cat", "sit", "s", "</s>"]);
  assert.deepEqual(view.keys.map(({ isSpecial }) => isSpecial), [false, false, false, false, true]);
});

test("merged subwords sum over keys and average over queries, so that rows sum to one", () => {
  const view = createHeadView(trace, cross.maps[0], 0, { mergeSubwords: true });
  assert.deepEqual(textsOf(view.keys), ["The", "cat", "sits", "</s>"]);
  assert.deepEqual(textsOf(view.queries), ["猫", "坐着", "</s>"]);
  assertClose(view.at(1, 2), 6 / 13); // 坐 has 2/13, 着 has 10/13
  assertClose(view.at(2, 2), 10 / 13);
  for (const query of [0, 1, 2]) assertClose(view.row(query).reduce((sum, { weight }) => sum + weight, 0), 1);
});

test("special tokens collapse into one last group", () => {
  const view = createHeadView(trace, cross.maps[0], 0, { collapseSpecial: true });
  assert.deepEqual(textsOf(view.keys), ["The", "cat", "sit", "s", "⋯"]);
  assert.deepEqual(textsOf(view.queries), ["猫", "坐", "着", "⋯"]);
  assertClose(view.at(0, 0), 9 / 13);
  assertClose(view.at(3, 3), 9 / 13);
});

test("rows are named by input tokens on request, also if they are grouped", () => {
  const named = (options) => createHeadView(trace, cross.maps[0], 0, { rows: "input", ...options });
  assert.deepEqual(textsOf(named().queries), ["<s>", "猫", "坐", "着"]);
  assert.deepEqual([...named().gold], ["1,1", "2,2", "2,3", "3,2", "3,3"]);
  assert.deepEqual(textsOf(named({ mergeSubwords: true }).queries), ["<s>", "猫", "坐着"]);
  assert.deepEqual(textsOf(named({ collapseSpecial: true }).queries), ["⋯", "猫", "坐", "着"]);
  const view = createHeadView(trace, cross.maps[0], 0, { mergeSubwords: true });
  for (const query of [0, 1, 2]) assert.deepEqual(named({ mergeSubwords: true }).row(query), view.row(query)); // the same weights
  assert.deepEqual(textsOf(createHeadView(trace, decoder.maps[0], 0, { rows: "input" }).queries), ["<s>", "猫", "坐", "着"]);
});

test("axes say what rows and columns are, in both languages", () => {
  const namesOf = (map, rows, language = "en") => Object.values(axisNamesOf(map, TEXTS[language], rows));
  assert.deepEqual(namesOf(cross.maps[0]), ["writing", "reading"]);
  assert.deepEqual(namesOf(cross.maps[0], "input"), ["decoder input", "reading"]);
  assert.deepEqual(namesOf(cross.maps[0], "output", "zh"), ["译出", "读取"]);
  assert.deepEqual(namesOf(decoder.maps[0], "input"), ["query", "key"]);
});

test("input tokens that are missing or too few are refused", () => {
  for (const name of ["nothing", "__proto__", "source", 3, {}]) {
    const maps = record.maps.map((map) => ({ ...map, query_inputs: name }));
    assert.throws(() => parseTrace({ ...record, maps }), /query_inputs of a map must name a list of \d tokens/);
  }
});

test("links are sorted by weight, without exact zeros", () => {
  const view = createHeadView(trace, decoder.maps[0], 0);
  assert.deepEqual(view.row(0).map(({ index }) => index), [0]);
  assert.deepEqual(view.row(1).map(({ index }) => index), [1, 0]);
  assert.equal(view.row(3)[0].index, 3);
  assert.deepEqual(view.column(0)[0].index, 0);
  assert.equal(view.maximum, 1);
});

test("gold links between words are cells between their tokens", () => {
  const [map] = cross.maps;
  assert.deepEqual([...createHeadView(trace, map, 0).gold], ["0,1", "1,2", "1,3", "2,2", "2,3"]);
  assert.deepEqual([...createHeadView(trace, map, 0, { mergeSubwords: true }).gold], ["0,1", "1,2"]);
  assert.equal(createHeadView(trace, encoder.maps[0], 0).gold.size, 0);
});

test("a summarised map knows top weights, remainder and tiles, and is never grouped", () => {
  const map = cross.maps[2];
  assert.deepEqual(map.heads, [0, 3]);
  const view = createHeadView(trace, map, 1, { mergeSubwords: true, collapseSpecial: true });
  assert.equal(view.isDense, false);
  assert.equal(view.keys.length, 5);
  assertClose(view.at(1, 2), 9 / 13);
  assert.equal(view.at(1, 4), null);
  assertClose(view.remainder(1), 3 / 13, 2e-4);
  assert.equal(view.column(2)[0].index, 1);
  const pixels = view.rasterize({ top: 0, left: 0, bottom: 4, right: 5 }, 4, 5);
  assertClose(pixels[1 * 5 + 2], 9 / 13);
  assertClose(pixels[1 * 5 + 1], 1 / 13, 2e-3); // its tile has a larger mean, but it is at most the smallest top weight
});

test("a downsampled raster keeps the maximum of the cells of a pixel", () => {
  const view = createHeadView(trace, cross.maps[0], 0);
  const isLarge = (pixels) => [...pixels].map((weight) => weight > 0.5);
  const all = { top: 0, left: 0, bottom: 4, right: 5 };
  assert.deepEqual(isLarge(view.rasterize(all, 2, 2)), [true, false, true, true]);
  assert.deepEqual(isLarge(view.rasterize({ top: 1, left: 1, bottom: 3, right: 3 }, 2, 2)), [true, false, false, true]);
  assert.deepEqual(isLarge(createHeadView(trace, cross.maps[2], 0).rasterize(all, 2, 2)), [true, false, true, true]);
});

test("arrays of 8, 16 and 32 bits are little-endian", () => {
  const encode = (bytes) => Buffer.from(bytes).toString("base64");
  const decode = (bits, bytes, count) => [...dequantize({ shape: [count], bits, scale: 1, data: encode(bytes) }).values];
  assert.deepEqual(decode(8, [1, 255], 2), [1, 255]);
  assert.deepEqual(decode(16, [1, 2, 255, 255], 2), [513, 65535]);
  assert.deepEqual(decode(32, [1, 0, 0, 1], 1), [16777217]);
  assert.throws(() => decode(16, [1, 2, 3], 2), /must hold 4 bytes, but it holds 3/);
});

test("JSON that is not a trace, and other format versions, are refused", () => {
  assert.throws(() => parseTrace({}), /not a trace/);
  assert.throws(() => parseTrace({ ...record, version: 3 }), /version 3, but this page reads version 4; record it again/);
});

test("a weight has two decimals, and is 0 only if it is exactly zero", () => {
  assert.deepEqual([0.694, 0.004, 0].map((weight) => formatWeight(weight, 1e-5)), ["0.69", "<0.01", "0"]);
  assert.equal(formatWeight(0, 1 / 255), "<0.01"); // at 8 bits, a small weight may be rounded to 0
});
