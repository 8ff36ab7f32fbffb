import assert from "node:assert/strict";
import { test } from "node:test";

import { number, ofLook, oneOf, read, toLook, whole, write } from "../../../src/regard/explorer/static/urlState.js";

test("what is written in an address is read again, whatever the text", () => {
  const values = { text: 'a & b = "c" #?% </script> 猫 \u202f', run: "demo-2", "a.head": "3" };
  assert.deepEqual(read(write({ page: "translate", values })), { page: "translate", values });
  assert.ok(!/[<>"\s]/.test(write({ page: "translate", values })));
});

test("what is empty is left out, and nothing is nothing", () => {
  assert.equal(write({ page: "traces", values: { name: "", at: null, head: undefined } }), "#traces");
  assert.equal(write({ page: "traces", values: { layer: 0 } }), "#traces?layer=0");
  assert.deepEqual(read(""), { page: "", values: {} });
  assert.deepEqual(read("#/training?run=a?b"), { page: "training", values: { run: "a?b" } });
  assert.deepEqual(read("#x?%E0%A4%A=1&=2").page, "x"); // a torn link opens the page all the same
});

test("where a trace is looked at is told in an address and found again", () => {
  const start = { kind: "encoder", layer: 0, head: 3, mode: "lines", words: true, folded: false, stretched: true, threshold: 0.1, query: 2, key: null };
  const { values } = read(write({ page: "translate", values: ofLook(start) }));
  assert.deepEqual(toLook(values), start);
  assert.equal("hide" in read(write({ page: "x", values: ofLook({ threshold: 0.02 }) })).values, false);
});

test("odd numbers in an address become usual ones", () => {
  assert.deepEqual(["7", "-1", "1e9", "x", "", undefined].map(whole), [7, null, null, null, null, null]);
  assert.deepEqual(["0.5", "9", "-9", "NaN", "Infinity", "", undefined].map((text) => number(text, 1, [0, 2])), [0.5, 2, 0, 1, 1, 1, 1]);
  const { layer, head, query, key, threshold } = toLook({ layer: "-3", head: "a", at: "x,<b>", hide: "?" });
  assert.deepEqual([layer, head, query, key, threshold], [undefined, 0, null, null, 0.02]);
});

test("a name is one of a table's own, and not what every object has", () => {
  const table = { first: 1, second: 2 };
  assert.equal(oneOf(table, "second", "first"), "second");
  for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", "third", "", undefined]) {
    assert.equal(oneOf(table, name, "first"), "first");
  }
});
