import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { chosenLanguage, TEXTS } from "../../../src/regard/viz/static/i18n.js";
import { sentence } from "../../../src/regard/viz/static/description.js";
import { readTrace } from "../../../src/regard/viz/static/trace.js";
import { headView } from "../../../src/regard/viz/static/headView.js";

const trace = readTrace(JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url))));
const decoder = headView(trace, trace.looks[1], 0);
const reduced = headView(trace, trace.looks.at(-1), 0);
const at = (query, key, locked = false) => ({ query, key, locked });

test("a query is told by where it looks most", () => {
  assert.equal(sentence(decoder, at(1, null), TEXTS.en), "“猫” looks most at “猫” (0.90) and “<s>” (0.10).");
  assert.equal(sentence(decoder, at(1, null), TEXTS.zh), "“猫”最关注“猫”（0.90）和“<s>”（0.10）。");
});

test("a cell is told first, a key by who looks at it, a lock last", () => {
  assert.match(sentence(decoder, at(0, 1), TEXTS.en), /^“<s>” looks at “猫” with 0\. /);
  assert.match(sentence(decoder, at(null, 0), TEXTS.en), /^“<s>” is looked at most by “<s>” \(1\.00\), .* and /);
  assert.match(sentence(decoder, at(null, 0, true), TEXTS.en), /Locked\.$/);
  assert.equal(sentence(decoder, at(null, null), TEXTS.en), TEXTS.en.idle);
});

test("what was left out is said", () => {
  assert.match(sentence(reduced, at(1, 4), TEXTS.en), /less than at its strongest.* The others share 0\.23\.$/);
});

test("who looks nowhere is said to", () => {
  const blind = { ...decoder, row: () => [], column: () => [] };
  assert.equal(sentence(blind, at(0, null), TEXTS.en), "“<s>” looks nowhere.");
  assert.equal(sentence(blind, at(null, 1), TEXTS.zh), "没有词关注“猫”。");
});

test("the language is the browser's, if it is known", () => {
  assert.deepEqual(["zh", "zh-CN", "ZH-tw", "en-GB", "fr", undefined].map(chosenLanguage), ["zh", "zh", "zh", "en", "en", "en"]);
});

test("a word from the right does not turn the sentence around", () => {
  const arabic = { ...decoder, queries: [{ text: "قطة" }], row: () => [] };
  assert.equal(sentence(arabic, at(0, null), TEXTS.en), "“\u2068قطة\u2069” looks nowhere.");
});
