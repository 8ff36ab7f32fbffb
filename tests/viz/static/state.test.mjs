import assert from "node:assert/strict";
import { test } from "node:test";

import { commandForKey } from "../../../src/regard/viz/static/keyboard.js";
import { clampSelection, createState, reduce, toViewState, UNZOOMED, withoutDefaultHead } from "../../../src/regard/viz/static/state.js";

const map = (...heads) => ({ heads });
const groups = [
  { name: "encoder", maps: [map(0, 1)] },
  { name: "cross", maps: [map(0, 1, 2), map(0, 1, 2), map(4)] },
];
const lengths = { queries: 3, keys: 5 };
const after = (state, ...actions) => actions.reduce((now, action) => reduce(now, action, groups, lengths), state);

test("the initial state shows cross-attention, or what the view state names", () => {
  assert.equal(createState(groups).tab, 1);
  assert.equal(createState(groups.slice(0, 1)).tab, 0);
  const { tab, layer, head } = createState(groups, { kind: "cross", layer: 2, head: 4 });
  assert.deepEqual([tab, layer, head], [1, 2, 0]); // the model's head 4 has index 0
});

test("the initial state shows the selected head of the group, unless the view state names another", () => {
  const selected = groups.map((group, n) => ({ ...group, selected: { layer: n, head: 1 } }));
  const positionOf = (viewState) => {
    const { tab, layer, head } = createState(selected, viewState);
    return [tab, layer, head];
  };
  assert.deepEqual(positionOf({}), [1, 1, 1]);
  assert.deepEqual(positionOf({ kind: "encoder" }), [0, 0, 1]);
  assert.deepEqual(positionOf({ head: 2 }), [1, 1, 2]);
  assert.deepEqual(positionOf({ layer: 0 }), [1, 0, 0]); // the selected head is one of another layer
  const named = { kind: "cross", layer: 1, head: 1, rows: "input" };
  assert.deepEqual(withoutDefaultHead(named, selected), { rows: "input" });
  for (const other of [{ kind: "encoder" }, { layer: 0 }, { head: 2 }]) {
    assert.deepEqual(withoutDefaultHead({ ...named, ...other }, selected), { ...named, ...other });
  }
});

test("a state is restored from its view state", () => {
  const state = after(
    createState(groups),
    { type: "selectHead", layer: 2, head: 0 },
    { type: "mode", to: "lines" },
    { type: "rows", to: "input" },
    { type: "mergeSubwords" },
    { type: "threshold", to: 0.1 },
    { type: "lock", query: 1, key: null },
  );
  const viewState = JSON.parse(JSON.stringify(toViewState(state, groups)));
  assert.deepEqual([viewState.kind, viewState.layer, viewState.head], ["cross", 2, 4]); // the model's index of the head
  assert.deepEqual(createState(groups, viewState), state);
  assert.equal("query" in toViewState(after(state, { type: "clear" }), groups), false);
});

test("a view state that is out of range is clamped", () => {
  const state = createState(groups, { kind: "gone", layer: 99, head: 99, mode: "<b>", rows: "<b>", threshold: 7, query: 9, key: 2 });
  assert.deepEqual([state.tab, state.layer, state.head, state.mode, state.rows, state.threshold], [0, 0, 0, "matrix", "output", 1]);
  const clamped = clampSelection(state, lengths);
  assert.deepEqual([clamped.query, clamped.key, clamped.locked], [null, 2, true]);
  assert.equal(clampSelection({ ...state, key: 5 }, lengths).locked, false);
});

test("layer and head stay in range", () => {
  const state = after(createState(groups), { type: "head", by: 2 }, { type: "layer", by: 7 });
  assert.deepEqual([state.layer, state.head], [2, 0]);
  assert.deepEqual(after(state, { type: "layer", by: -9 }).layer, 0);
  const other = after(createState(groups), { type: "selectHead", layer: 1, head: 2 }, { type: "tab", to: 0 });
  assert.deepEqual([other.tab, other.layer, other.head], [0, 0, 1]);
});

test("a lock ignores hovering, and is released by a second click and by clear", () => {
  const locked = after(createState(groups), { type: "lock", query: 1, key: 2 }, { type: "hover", query: 0, key: 0 });
  assert.deepEqual([locked.query, locked.key, locked.locked], [1, 2, true]);
  assert.equal(after(locked, { type: "lock", query: 1, key: 2 }).locked, false);
  assert.equal(after(locked, { type: "lock", query: 2, key: 2 }).locked, true);
  assert.equal(after(locked, { type: "clear" }).query, null);
});

test("moves go from token to token and stop at the ends", () => {
  let state = after(createState(groups), { type: "move", query: 1 });
  assert.deepEqual([state.query, state.key], [0, null]);
  state = after(state, { type: "move", query: 1 }, { type: "move", key: 1 });
  assert.deepEqual([state.query, state.key], [1, 0]);
  state = after(state, ...Array(9).fill({ type: "move", query: 1 }));
  assert.equal(state.query, 2);
});

test("tabs and grouping clear selection and zoom; another head keeps them", () => {
  const locked = after(createState(groups), { type: "lock", query: 1, key: 2 }, { type: "zoom", to: { scale: 3, x: 1, y: 1 } });
  assert.equal(after(locked, { type: "head", by: 1 }).query, 1);
  assert.equal(after(locked, { type: "head", by: 1 }).zoom.scale, 3);
  for (const action of [{ type: "tab", to: 0 }, { type: "mergeSubwords" }, { type: "collapseSpecial" }]) {
    const state = after(locked, action);
    assert.deepEqual([state.query, state.locked, state.zoom], [null, false, UNZOOMED]);
  }
});

test("actions never modify a state, and unknown ones are errors", () => {
  const state = Object.freeze(createState(groups));
  for (const type of ["mergeSubwords", "collapseSpecial", "autoScale", "clear"]) assert.notEqual(after(state, { type }), state);
  assert.throws(() => after(state, { type: "jump" }), /unknown action: jump/);
});

test("keys are mapped to commands", () => {
  assert.deepEqual(commandForKey({ key: "ArrowDown" }), { type: "move", query: 1, key: 0 });
  assert.deepEqual(commandForKey({ key: "ArrowDown", shiftKey: true }), { type: "layer", by: 1 });
  assert.deepEqual(commandForKey({ key: "ArrowLeft" }, true), { type: "head", by: -1 });
  assert.deepEqual(commandForKey({ key: "2" }), { type: "tab", to: 1 });
  assert.equal(commandForKey({ key: "l", ctrlKey: true }), null); // a browser shortcut
  assert.equal(commandForKey({ key: "q" }), null);
});
