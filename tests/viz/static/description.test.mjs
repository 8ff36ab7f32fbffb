import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { describeSelection, describeView } from "../../../src/regard/viz/static/description.js";
import { createHeadView } from "../../../src/regard/viz/static/headView.js";
import { resolveLanguage, TEXTS } from "../../../src/regard/viz/static/i18n.js";
import { parseTrace } from "../../../src/regard/viz/static/trace.js";

const trace = parseTrace(JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url))));
const decoder = createHeadView(trace, trace.maps[1], 0);
const summarised = createHeadView(trace, trace.maps.at(-1), 0);
const selection = (query, key, locked = false) => ({ query, key, locked });

test("a query is described by the keys it attends to most", () => {
  assert.equal(describeSelection(decoder, selection(1, null), TEXTS.en), "“猫” attends most to “猫” (0.90) and “<s>” (0.10).");
  assert.equal(describeSelection(decoder, selection(1, null), TEXTS.zh), "“猫”最关注“猫”（0.90）和“<s>”（0.10）。");
});

test("a cell is described first, a key by its queries, a lock last", () => {
  assert.match(describeSelection(decoder, selection(0, 1), TEXTS.en), /^“<s>” attends to “猫” with weight 0\. “<s>” attends most/);
  assert.match(describeSelection(decoder, selection(null, 0), TEXTS.en), /^“<s>” is attended to most by “<s>” \(1\.00\), .* and /);
  assert.match(describeSelection(decoder, selection(null, 0, true), TEXTS.en), / Locked\.$/);
  assert.equal(describeSelection(decoder, selection(null, null), TEXTS.en), TEXTS.en.noSelection);
});

test("without a selection, a view says what its rows and columns are", () => {
  const [encoder, , cross] = trace.maps;
  const describe = (map, state, texts = TEXTS.en) => describeView(map, { mode: "matrix", rows: "output", ...state }, texts);
  assert.match(describe(cross, {}), /^A row is a word being written, a column a word being read; .*Point at a token/);
  assert.match(describe(cross, { rows: "input" }), /^A row is a word that the decoder reads/);
  assert.match(describe(encoder, { rows: "input" }), /^A row is a token that attends/);
  assert.match(describe(cross, { mode: "lines" }), /^Left: words being written\. Right: words being read\./);
  assert.match(describe(cross, {}, TEXTS.zh), /^每行是一个正在译出的词，.*。将指针/);
  assert.match(describe(cross, { mode: "image" }), /mean weight of all queries\. Point at a token at the left/);
});

test("Chinese sentences are not separated by spaces", () => {
  assert.match(describeSelection(decoder, selection(0, 1, true), TEXTS.zh), /^“<s>”对“猫”的权重为 0。“<s>”最关注.*。已锁定。$/);
});

test("of a summarised head, unknown weights and the remainder are mentioned", () => {
  assert.match(describeSelection(summarised, selection(1, 4), TEXTS.en), /less than its largest weights\..* The other keys share 0\.23\.$/);
});

test("rows and columns without weight are described as such", () => {
  const empty = { ...decoder, row: () => [], column: () => [] };
  assert.equal(describeSelection(empty, selection(0, null), TEXTS.en), "“<s>” attends to nothing.");
  assert.equal(describeSelection(empty, selection(null, 1), TEXTS.zh), "没有词元关注“猫”。");
});

test("a right-to-left word is isolated from the sentence around it", () => {
  const arabic = { ...decoder, queries: [{ text: "قطة" }], row: () => [] };
  assert.equal(describeSelection(arabic, selection(0, null), TEXTS.en), "“\u2068قطة\u2069” attends to nothing.");
});

test("the language is the browser's if it is supported, else English", () => {
  assert.deepEqual(["zh", "zh-CN", "ZH-tw", "en-GB", "fr", undefined].map(resolveLanguage), ["zh", "zh", "zh", "en", "en", "en"]);
});

test("both locales have the same texts", () => {
  assert.deepEqual(Object.keys(TEXTS.en), Object.keys(TEXTS.zh));
  for (const [key, text] of Object.entries(TEXTS.en)) assert.equal(typeof text, typeof TEXTS.zh[key], key);
});
