import assert from "node:assert/strict";
import { test } from "node:test";

import { actionOf } from "../../../src/regard/viz/static/keyboard.js";
import { initial, kept, step, told, WHOLE } from "../../../src/regard/viz/static/state.js";

const look = (...heads) => ({ heads });
const stacks = [
  { name: "encoder", looks: [look(0, 1)] },
  { name: "cross", looks: [look(0, 1, 2), look(0, 1, 2), look(4)] },
];
const shown = { queries: 3, keys: 5 };
const after = (state, ...actions) => actions.reduce((now, action) => step(now, action, stacks, shown), state);

test("cross-attention comes first, or what the page was told", () => {
  assert.equal(initial(stacks).tab, 1);
  assert.equal(initial(stacks.slice(0, 1)).tab, 0);
  const { tab, layer, head } = initial(stacks, { kind: "cross", layer: 2, head: 4 });
  assert.deepEqual([tab, layer, head], [1, 2, 0]); // head 4 is in the first place
});

test("a state told is found again", () => {
  const wanted = after(
    initial(stacks),
    { type: "pick", layer: 2, head: 0 },
    { type: "mode", to: "lines" },
    { type: "words" },
    { type: "threshold", to: 0.1 },
    { type: "lock", query: 1, key: null },
  );
  const start = JSON.parse(JSON.stringify(told(wanted, stacks)));
  assert.deepEqual([start.kind, start.layer, start.head], ["cross", 2, 4]); // named as in the model
  assert.deepEqual(initial(stacks, start), wanted);
  assert.equal("query" in told(after(wanted, { type: "clear" }), stacks), false);
});

test("a link may point at what is not there", () => {
  const state = initial(stacks, { kind: "gone", layer: 99, head: 99, mode: "<b>", threshold: 7, query: 9, key: 2 });
  assert.deepEqual([state.tab, state.layer, state.head, state.mode, state.threshold], [0, 0, 0, "matrix", 1]);
  assert.deepEqual([kept(state, shown).query, kept(state, shown).key, kept(state, shown).locked], [null, 2, true]);
  assert.equal(kept({ ...state, key: 5 }, shown).locked, false);
});

test("layers and heads stay within what there is", () => {
  const state = after(initial(stacks), { type: "head", by: 2 }, { type: "layer", by: 7 });
  assert.deepEqual([state.layer, state.head], [2, 0]);
  assert.deepEqual(after(state, { type: "layer", by: -9 }).layer, 0);
  const other = after(initial(stacks), { type: "pick", layer: 1, head: 2 }, { type: "tab", to: 0 });
  assert.deepEqual([other.tab, other.layer, other.head], [0, 0, 1]);
});

test("a lock holds against pointing, opens by a second click, and by Escape", () => {
  const locked = after(initial(stacks), { type: "lock", query: 1, key: 2 }, { type: "point", query: 0, key: 0 });
  assert.deepEqual([locked.query, locked.key, locked.locked], [1, 2, true]);
  assert.equal(after(locked, { type: "lock", query: 1, key: 2 }).locked, false);
  assert.equal(after(locked, { type: "lock", query: 2, key: 2 }).locked, true);
  assert.equal(after(locked, { type: "clear" }).query, null);
});

test("arrows walk from token to token and stop at the ends", () => {
  let state = after(initial(stacks), { type: "move", query: 1 });
  assert.deepEqual([state.query, state.key], [0, null]);
  state = after(state, { type: "move", query: 1 }, { type: "move", key: 1 });
  assert.deepEqual([state.query, state.key], [1, 0]);
  state = after(state, ...Array(9).fill({ type: "move", query: 1 }));
  assert.equal(state.query, 2);
});

test("another attention, words or folding forget what was pointed at; another head does not", () => {
  const locked = after(initial(stacks), { type: "lock", query: 1, key: 2 }, { type: "zoom", to: { scale: 3, x: 1, y: 1 } });
  assert.equal(after(locked, { type: "head", by: 1 }).query, 1);
  assert.equal(after(locked, { type: "head", by: 1 }).zoom.scale, 3);
  for (const action of [{ type: "tab", to: 0 }, { type: "words" }, { type: "folded" }]) {
    const { query, locked: held, zoom } = after(locked, action);
    assert.deepEqual([query, held, zoom], [null, false, WHOLE]);
  }
});

test("no state is ever changed in place", () => {
  const state = Object.freeze(initial(stacks));
  for (const type of ["words", "folded", "stretched", "clear"]) assert.notEqual(after(state, { type }), state);
  assert.throws(() => after(state, { type: "jump" }), /no action is called jump/);
});

test("keys become actions", () => {
  assert.deepEqual(actionOf({ key: "ArrowDown" }), { type: "move", query: 1, key: 0 });
  assert.deepEqual(actionOf({ key: "ArrowDown", shiftKey: true }), { type: "layer", by: 1 });
  assert.deepEqual(actionOf({ key: "ArrowLeft" }, true), { type: "head", by: -1 });
  assert.deepEqual(actionOf({ key: "2" }), { type: "tab", to: 1 });
  assert.equal(actionOf({ key: "l", ctrlKey: true }), null); // the browser's own
  assert.equal(actionOf({ key: "q" }), null);
});
