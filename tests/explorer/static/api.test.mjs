import assert from "node:assert/strict";
import { test } from "node:test";

import { asker, isStopped, Problem } from "../../../src/regard/explorer/static/api.js";
import { newest, paused } from "../../../src/regard/explorer/static/debounce.js";

const answer = (body, status = 200, headers = {}) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers });

/** A server that gives these answers, one after the other; `asked` lists what came. */
function server(...answers) {
  const asked = [];
  const slept = [];
  const fetch = async (path, options) => {
    asked.push({ path, ...options });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return { ask: asker({ fetch, sleep: async (seconds) => void slept.push(seconds) }), asked, slept };
}

test("a body is posted as JSON, a file as it is, and nothing is a plain question", async () => {
  const { ask, asked } = server(answer({ a: 1 }), answer({}), answer({}));
  assert.deepEqual(await ask("/api/x", { body: { text: "猫" } }), { a: 1 });
  const file = new Blob(["raw"]);
  await ask("/api/y", { body: file });
  await ask("/api/z");
  assert.deepEqual([asked[0].method, asked[0].body, asked[0].headers["Content-Type"]], ["POST", '{"text":"猫"}', "application/json"]);
  assert.equal(asked[1].body, file);
  assert.equal(asked[1].headers["Content-Type"], "application/octet-stream");
  assert.equal(asked[2].method, undefined);
});

test("a busy server is asked again after as long as it wishes", async () => {
  const busy = (seconds) => answer({ error: "busy" }, 503, seconds === undefined ? {} : { "Retry-After": String(seconds) });
  const { ask, asked, slept } = server(busy(3), busy(), busy(9999), answer({ done: true }));
  const told = [];
  assert.deepEqual(await ask("/api/x", { body: {}, busy: (seconds) => told.push(seconds) }), { done: true });
  assert.deepEqual(told, [3, 1, 30]);
  assert.deepEqual(slept, told);
  assert.equal(asked.length, 4);
});

test("one that stays busy is given up", async () => {
  const { ask } = server(...Array.from({ length: 20 }, () => answer({ error: "busy" }, 503)));
  await assert.rejects(ask("/api/x"), (error) => error instanceof Problem && error.kind === "busy");
});

test("a refusal keeps its sentence; what is no sentence does not become one", async () => {
  const { ask } = server(answer({ error: "text must be shorter." }, 422), answer("<html>500</html>", 500), new TypeError("failed"), answer("torn", 200));
  await assert.rejects(ask("/a"), { kind: "refused", message: "text must be shorter." });
  for (let n = 0; n < 3; n++) await assert.rejects(ask("/a"), { kind: "unreachable" });
});

test("what is no longer wanted ends as that", async () => {
  const stopped = new DOMException("stop", "AbortError");
  const { ask } = server(stopped);
  await assert.rejects(ask("/a"), (error) => isStopped(error));
});

test("answers are remembered only when told to, and refusals never", async () => {
  const { ask, asked } = server(answer({ error: "no." }, 404), answer({ n: 1 }), answer({ n: 2 }), answer({ n: 3 }));
  await assert.rejects(ask("/a", { body: { x: 1 }, keep: true }));
  assert.deepEqual(await ask("/a", { body: { x: 1 }, keep: true }), { n: 1 });
  assert.deepEqual(await ask("/a", { body: { x: 1 }, keep: true }), { n: 1 });
  assert.deepEqual(await ask("/a", { body: { x: 2 }, keep: true }), { n: 2 });
  assert.deepEqual(await ask("/a", { body: { x: 1 } }), { n: 3 });
  assert.equal(asked.length, 4);
});

test("of work asked for while one is under way only the newest is done", async () => {
  const done = [];
  const releases = [];
  const act = newest((input) => new Promise((release) => {
    done.push(input);
    releases.push(release);
  }));
  for (const input of [1, 2, 3, 4]) act(input);
  assert.deepEqual(done, [1]);
  releases[0]();
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(done, [1, 4]);
  releases[1]();
  await new Promise((resolve) => setTimeout(resolve));
  act(5);
  assert.deepEqual(done, [1, 4, 5]);
});

test("a pause is waited for, and 'now' does not wait nor come twice", async () => {
  const said = [];
  const typed = paused((text) => said.push(text), 15);
  for (const text of ["a", "ab", "abc"]) typed.later(text);
  assert.deepEqual(said, []);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(said, ["abc"]);
  typed.later("d");
  typed.now("e");
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(said, ["abc", "e"]);
});
