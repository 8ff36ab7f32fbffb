import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { unseenWords } from "../../../src/regard/browser/static/unseenWords.js";

const { words, texts, expected } = JSON.parse(readFileSync(`${process.env.REGARD_FIXTURES}/unseen_words.json`));

test("words that the training data lack are those that Python finds", () => {
  const known = new Set(words);
  texts.forEach((text, n) => assert.deepEqual(unseenWords(text, known), expected[n], JSON.stringify(text)));
});
