import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { displayTokens, escapeControls } from "../../../src/regard/viz/static/detokenize.js";
import { groupTokens } from "../../../src/regard/viz/static/tokenGroups.js";

const cases = JSON.parse(readFileSync(new URL("../../fixtures/display_tokens.json", import.meta.url)));

for (const { case: name, pieces, special, displayed } of cases) {
  test(`displayTokens: ${name}`, () => assert.deepEqual(displayTokens(pieces, special), displayed));
}

test("control and direction characters are escaped, joiners are kept", () => {
  assert.equal(escapeControls("a\n\x1b\u202e"), "a\\n\\x1b\\u202e");
  assert.equal(escapeControls("نمی\u200cخواهم"), "نمی\u200cخواهم");
});

test("WordPiece prefixes are removed from merged words only if every continuation has one", () => {
  const texts = (...pieces) =>
    groupTokens({ pieces, words: [0, 0, 1, 1], special: [], padding: [] }, { mergeSubwords: true }).map((group) => group.text);
  assert.deepEqual(texts("look", "##ed", "at", "##7"), ["looked", "at7"]);
  assert.deepEqual(texts("look", "ed", "at", "##7"), ["looked", "at##7"]);
});
