import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { groups } from "../../../src/regard/viz/static/tokenGroups.js";
import { readable, safe } from "../../../src/regard/viz/static/detokenize.js";

const cases = JSON.parse(readFileSync(new URL("../../fixtures/pieces.json", import.meta.url)));

for (const { says, pieces, special, readable: wanted } of cases) {
  test(says, () => assert.deepEqual(readable(pieces, special), wanted));
}

test("signs that steer are spelled out, and those that shape words are not", () => {
  assert.equal(safe("a\n\x1b\u202e"), "a\\n\\x1b\\u202e");
  assert.equal(safe("نمی\u200cخواهم"), "نمی\u200cخواهم");
});

test("marks that part a word go when its pieces are joined, as in Python", () => {
  const shown = (...pieces) =>
    groups({ pieces, words: [0, 0, 1, 1], special: [], padding: [] }, { words: true }).map((group) => group.text);
  assert.deepEqual(shown("look", "##ed", "at", "##7"), ["looked", "at7"]);
  assert.deepEqual(shown("look", "ed", "at", "##7"), ["looked", "at##7"]);
});
