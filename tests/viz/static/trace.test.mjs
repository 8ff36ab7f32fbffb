import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { stacks } from "../../../src/regard/viz/static/mapGroups.js";
import { readTrace, unpack } from "../../../src/regard/viz/static/trace.js";
import { headView, number } from "../../../src/regard/viz/static/headView.js";

const record = JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url)));
const trace = readTrace(record);
const named = Object.fromEntries(stacks(trace).map((stack) => [stack.name, stack]));

const near = (a, b, within = 1e-4) => assert.ok(Math.abs(a - b) < within, `${a} is not ${b}`);

test("the attentions have the names that Python gives them", () => {
  assert.deepEqual(stacks(trace).map(({ name, looks }) => [name, looks.length]), [["encoder", 1], ["decoder", 1], ["cross", 3]]);
  const other = { ...trace, tokens: { text: trace.tokens.source }, looks: [] };
  const look = (kind, queries) => ({ kind, queries, keys: "text" });
  assert.deepEqual(stacks({ ...other, looks: [look("causal", "text")] }).map(({ name }) => name), ["causal"]);
  assert.deepEqual(
    stacks({ ...other, looks: [look("cross", "text"), look("cross", "b"), look("self", "text")] }).map(({ name }) => name),
    ["cross text-text", "cross b-text", "self"],
  );
});

test("whole weights are read in their order: head, query, key", () => {
  for (const head of [0, 1]) {
    const view = headView(trace, named.cross.looks[0], head);
    for (let query = 0; query < 4; query++) {
      for (let key = 0; key < 5; key++) near(view.at(query, key), (key === (query + head) % 5 ? 9 : 1) / 13);
    }
  }
});

test("the words are those that Python shows", () => {
  const view = headView(trace, named.cross.looks[0], 0);
  assert.deepEqual(view.queries.map(({ text }) => text), ["<s>", "猫", "坐", "着"]);
  assert.deepEqual(view.keys.map(({ text }) => text), ["The", "cat", "sit", "s", "</s>"]);
  assert.deepEqual(view.keys.map(({ special }) => special), [false, false, false, false, true]);
});

test("words sum over keys and take the mean over queries; rows still sum to one", () => {
  const view = headView(trace, named.cross.looks[0], 0, { words: true });
  assert.deepEqual(view.keys.map(({ text }) => text), ["The", "cat", "sits", "</s>"]);
  assert.deepEqual(view.queries.map(({ text }) => text), ["<s>", "猫", "坐着"]);
  near(view.at(2, 2), 10 / 13);
  near(view.at(1, 2), 2 / 13);
  for (const query of [0, 1, 2]) near(view.row(query).reduce((sum, { weight }) => sum + weight, 0), 1);
});

test("special pieces fold into one last place", () => {
  const view = headView(trace, named.cross.looks[0], 0, { folded: true });
  assert.deepEqual(view.keys.map(({ text }) => text), ["The", "cat", "sit", "s", "⋯"]);
  assert.deepEqual(view.queries.map(({ text }) => text), ["猫", "坐", "着", "⋯"]);
  near(view.at(3, 0), 9 / 13);
  near(view.at(0, 1), 9 / 13);
});

test("links are strongest first, and exact zeros are none", () => {
  const view = headView(trace, named.decoder.looks[0], 0);
  assert.deepEqual(view.row(0).map(({ place }) => place), [0]);
  assert.deepEqual(view.row(1).map(({ place }) => place), [1, 0]);
  assert.equal(view.row(3)[0].place, 3);
  assert.deepEqual(view.column(0)[0].place, 0);
  assert.equal(view.maximum, 1);
});

test("gold links between words are cells between their pieces", () => {
  const look = named.cross.looks[0];
  assert.deepEqual([...headView(trace, look, 0).gold], ["1,1", "2,2", "2,3", "3,2", "3,3"]);
  assert.deepEqual([...headView(trace, look, 0, { words: true }).gold], ["1,1", "2,2"]);
  assert.equal(headView(trace, named.encoder.looks[0], 0).gold.size, 0);
});

test("a reduced look knows its strongest, what is left, and tiles", () => {
  const look = named.cross.looks[2];
  assert.deepEqual(look.heads, [0, 3]);
  const view = headView(trace, look, 1, { words: true, folded: true }); // neither is possible
  assert.equal(view.whole, false);
  assert.equal(view.keys.length, 5);
  near(view.at(1, 2), 9 / 13);
  assert.equal(view.at(1, 4), null);
  near(view.leftOut(1), 3 / 13, 2e-4);
  assert.equal(view.column(2)[0].place, 1);
  const pixels = view.raster({ top: 0, left: 0, bottom: 4, right: 5 }, 4, 5);
  near(pixels[1 * 5 + 2], 9 / 13);
  near(pixels[1 * 5 + 1], 1 / 13, 2e-3); // its tile has a peak, but it is no more than the weakest kept
});

test("a coarser picture keeps the strongest of what a pixel covers", () => {
  const view = headView(trace, named.cross.looks[0], 0);
  const all = { top: 0, left: 0, bottom: 4, right: 5 };
  const pixels = view.raster(all, 2, 2);
  assert.deepEqual([...pixels].map((weight) => weight > 0.5), [true, false, true, true]);
  const part = view.raster({ top: 1, left: 1, bottom: 3, right: 3 }, 2, 2);
  assert.deepEqual([...part].map((weight) => weight > 0.5), [true, false, false, true]);
  const reduced = headView(trace, named.cross.looks[2], 0).raster(all, 2, 2);
  assert.deepEqual([...reduced].map((weight) => weight > 0.5), [true, false, true, true]);
});

test("numbers of 8, 16 and 32 bits are little-endian", () => {
  const pack = (bytes) => Buffer.from(bytes).toString("base64");
  const read = (bits, bytes, count) => [...unpack({ shape: [count], bits, scale: 1, data: pack(bytes) }).values];
  assert.deepEqual(read(8, [1, 255], 2), [1, 255]);
  assert.deepEqual(read(16, [1, 2, 255, 255], 2), [513, 65535]);
  assert.deepEqual(read(32, [1, 0, 0, 1], 1), [16777217]);
  assert.throws(() => read(16, [1, 2, 3], 2), /must hold 4 bytes, not 3/);
});

test("what is no trace is refused with a sentence", () => {
  assert.throws(() => readTrace({}), /not a trace/);
  assert.throws(() => readTrace({ ...record, version: 1 }), /version 1, but this page reads version 2/);
});

test("a weight of two decimals; 0 only where it is exactly zero", () => {
  assert.deepEqual([0.694, 0.004, 0].map((weight) => number(weight, 1e-5)), ["0.69", "<0.01", "0"]);
  assert.equal(number(0, 1 / 255), "<0.01"); // rounded to 8 bits: who knows
});
