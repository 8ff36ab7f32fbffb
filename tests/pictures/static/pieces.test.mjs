import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readable, safe } from "../../../src/regard/pictures/static/pieces.js";

const cases = JSON.parse(readFileSync(new URL("../../data/pieces.json", import.meta.url)));

for (const { says, pieces, special, readable: wanted } of cases) {
  test(says, () => assert.deepEqual(readable(pieces, special), wanted));
}

test("signs that steer are spelled out, and those that shape words are not", () => {
  assert.equal(safe("a\n\x1b\u202e"), "a\\n\\x1b\\u202e");
  assert.equal(safe("نمی\u200cخواهم"), "نمی\u200cخواهم");
});
