import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { splitWords, strip, Tokenizer } from "../../../src/regard/browser/static/tokenizer.js";
import { assignWords, findWords } from "../../../src/regard/browser/static/words.js";

const fixtures = JSON.parse(readFileSync(`${process.env.REGARD_FIXTURES}/tokenizers.json`));

for (const [kind, cases] of Object.entries(fixtures)) {
  const tokenizer = new Tokenizer(cases.record);

  test(`${kind}: texts have the token ids that Python gives them`, () => {
    assert.ok(cases.texts.length > 2000);
    cases.texts.forEach((text, n) => assert.deepEqual(tokenizer.encode(text), cases.ids[n], JSON.stringify(text)));
  });

  test(`${kind}: token ids have the text that Python gives them, also if it is no valid UTF-8`, () => {
    cases.sequences.forEach((ids, n) => assert.equal(tokenizer.decode(ids), cases.decoded[n], String(ids)));
  });

  test(`${kind}: tokens belong to the words that Python assigns them to`, () => {
    cases.sequences.forEach((ids, n) => {
      assert.deepEqual(assignWords(tokenizer.offsets(ids), findWords(cases.decoded[n])), cases.assigned[n], String(ids));
    });
  });
}

test("words are found where Python finds them", () => {
  const { texts, words } = fixtures.bpe;
  texts.forEach((text, n) => {
    assert.deepEqual(findWords(text).map(([start, end]) => text.slice(start, end)), words[n], JSON.stringify(text));
  });
});

test("white space around a text is removed as in Python", () => {
  const { texts, stripped } = fixtures.bpe;
  texts.forEach((text, n) => assert.equal(strip(text), stripped[n], JSON.stringify(text)));
});

test("splitting loses no character", () => {
  for (const text of fixtures.bpe.texts) assert.equal(splitWords(text).join(""), text.replace(/\p{Surrogate}/gu, "?"));
});
