import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError, createClient, isAbortError } from "../../../src/regard/explorer/static/api.js";

const json = (body, status = 200, headers = {}) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers });

/** Create a client of a server that gives these responses in turn; it records requests and pauses. */
function clientOf(...responses) {
  const sent = [];
  const pauses = [];
  const fetch = async (path, init) => {
    sent.push({ path, ...init });
    const next = responses.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return { request: createClient({ fetch, sleep: async (seconds) => void pauses.push(seconds) }), sent, pauses };
}

test("a body is posted as JSON, a blob unchanged, and without a body it is a GET", async () => {
  const { request, sent } = clientOf(json({ a: 1 }), json({}), json({}));
  assert.deepEqual(await request("/api/x", { body: { text: "猫" } }), { a: 1 });
  const blob = new Blob(["raw"]);
  await request("/api/y", { body: blob });
  await request("/api/z");
  assert.deepEqual([sent[0].method, sent[0].body, sent[0].headers["Content-Type"]], ["POST", '{"text":"猫"}', "application/json"]);
  assert.equal(sent[1].body, blob);
  assert.equal(sent[1].headers["Content-Type"], "application/octet-stream");
  assert.equal(sent[2].method, undefined);
});

test("503 and 429 are retried after Retry-After seconds, within limits", async () => {
  const busy = (seconds) => json({ error: "busy" }, 503, seconds === undefined ? {} : { "Retry-After": String(seconds) });
  const tooMany = json({ error: "too many requests" }, 429, { "Retry-After": "2" });
  const { request, sent, pauses } = clientOf(busy(3), busy(), tooMany, busy(9999), json({ done: true }));
  const reported = [];
  assert.deepEqual(await request("/api/x", { body: {}, onBusy: (seconds) => reported.push(seconds) }), { done: true });
  assert.deepEqual(reported, [3, 1, 2, 30]);
  assert.deepEqual(pauses, reported);
  assert.equal(sent.length, 5);
});

test("a server that stays busy is an error after a number of attempts", async () => {
  const { request, sent } = clientOf(...Array.from({ length: 20 }, () => json({ error: "busy" }, 503)));
  await assert.rejects(request("/api/x"), (error) => error instanceof ApiError && error.kind === "busy");
  assert.equal(sent.length, 8);
});

test("a rejection keeps the server's message; anything else is unreachable", async () => {
  const { request } = clientOf(json({ error: "text must be shorter." }, 422), json("<html>500</html>", 500), new TypeError("failed"), json("torn", 200));
  await assert.rejects(request("/a"), { kind: "rejected", message: "text must be shorter." });
  for (let n = 0; n < 3; n++) await assert.rejects(request("/a"), { kind: "unreachable" });
});

test("an aborted request rejects with the abort error", async () => {
  const { request } = clientOf(new DOMException("stop", "AbortError"));
  await assert.rejects(request("/a"), (error) => isAbortError(error));
});

test("responses are cached only on request, and errors never", async () => {
  const { request, sent } = clientOf(json({ error: "no." }, 404), json({ n: 1 }), json({ n: 2 }), json({ n: 3 }));
  await assert.rejects(request("/a", { body: { x: 1 }, cache: true }));
  assert.deepEqual(await request("/a", { body: { x: 1 }, cache: true }), { n: 1 });
  assert.deepEqual(await request("/a", { body: { x: 1 }, cache: true }), { n: 1 });
  assert.deepEqual(await request("/a", { body: { x: 2 }, cache: true }), { n: 2 });
  assert.deepEqual(await request("/a", { body: { x: 1 } }), { n: 3 });
  assert.equal(sent.length, 4);
});
