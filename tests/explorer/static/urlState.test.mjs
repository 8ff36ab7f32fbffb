import assert from "node:assert/strict";
import { test } from "node:test";

import { formatHash, ownKeyOr, paramsToViewState, parseHash, parseIndex, parseNumber, viewStateToParams } from "../../../src/regard/explorer/static/urlState.js";

test("any text survives the URL", () => {
  const params = { text: 'a & b = "c" #?% </script> 猫 \u202f', run: "demo-2", "a.head": "3" };
  assert.deepEqual(parseHash(formatHash("translate", params)), { page: "translate", params });
  assert.ok(!/[<>"\s]/.test(formatHash("translate", params)));
});

test("empty parameters are left out, and malformed fragments still name a page", () => {
  assert.equal(formatHash("traces", { name: "", selected: null, head: undefined }), "#traces");
  assert.equal(formatHash("traces", { layer: 0 }), "#traces?layer=0");
  assert.deepEqual(parseHash(""), { page: "", params: {} });
  assert.deepEqual(parseHash("#/training?run=a?b"), { page: "training", params: { run: "a?b" } });
  assert.deepEqual(parseHash("#x?%E0%A4%A=1&=2").page, "x");
});

test("a view state is restored from the URL, and defaults are left out of it", () => {
  for (const mode of ["lines", "image"]) {
    const viewState = { kind: "encoder", layer: 0, head: 3, mode, rows: "input", mergeSubwords: true, collapseSpecial: false, autoScale: true, threshold: 0.1, opacity: 0.3, query: 2, key: null };
    const { params } = parseHash(formatHash("translate", viewStateToParams(viewState)));
    assert.deepEqual(paramsToViewState(params), viewState);
  }
  assert.equal(formatHash("x", viewStateToParams({ mode: "matrix", rows: "output" })), "#x");
});

test("invalid numbers become defaults or are clamped", () => {
  assert.deepEqual(["7", "-1", "1e9", "x", "", undefined].map(parseIndex), [7, null, null, null, null, null]);
  assert.deepEqual(["0.5", "9", "-9", "NaN", "Infinity", "", undefined].map((text) => parseNumber(text, 1, [0, 2])), [0.5, 2, 0, 1, 1, 1, 1]);
  const { layer, head, query, key, threshold } = paramsToViewState({ layer: "-3", head: "a", selected: "x,<b>", threshold: "?" });
  assert.deepEqual([layer, head, query, key, threshold], [undefined, undefined, null, null, undefined]);
});

test("only own keys of a table are accepted", () => {
  const table = { first: 1, second: 2 };
  assert.equal(ownKeyOr(table, "second", "first"), "second");
  for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", "third", "", undefined]) {
    assert.equal(ownKeyOr(table, name, "first"), "first");
  }
});
