import assert from "node:assert/strict";
import { test } from "node:test";

import { debounce, latestOnly } from "../../../src/regard/explorer/static/debounce.js";

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

test("while a task runs, only the latest input is kept", async () => {
  const started = [];
  const finish = [];
  const run = latestOnly((input) => new Promise((resolve) => {
    started.push(input);
    finish.push(resolve);
  }));
  for (const input of [1, 2, 3, 4]) run(input);
  assert.deepEqual(started, [1]);
  finish[0]();
  await wait(0);
  assert.deepEqual(started, [1, 4]);
  finish[1]();
  await wait(0);
  run(5);
  assert.deepEqual(started, [1, 4, 5]);
});

test("a debounced callback runs after a pause, or once and at once with runNow", async () => {
  const calls = [];
  const debounced = debounce((text) => calls.push(text), 15);
  for (const text of ["a", "ab", "abc"]) debounced.schedule(text);
  assert.deepEqual(calls, []);
  await wait(60);
  assert.deepEqual(calls, ["abc"]);
  debounced.schedule("d");
  debounced.runNow("e");
  await wait(60);
  assert.deepEqual(calls, ["abc", "e"]);
});
