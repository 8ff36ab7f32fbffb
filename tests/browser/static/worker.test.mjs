import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createClient, serve } from "../../../src/regard/browser/static/worker.js";

const [fixture] = Object.values(JSON.parse(readFileSync(`${process.env.REGARD_FIXTURES}/models.json`)));

/** Return a client without workers, as where a policy forbids them. */
const createLocalClient = (parameters = fixture.parameters) => createClient(fixture.record, parameters, "");

test("without workers the page itself translates", async () => {
  assert.equal(globalThis.Worker, undefined);
  const { target } = await createLocalClient().translate(fixture.texts[0]);
  assert.equal(target.text, fixture.beam[0].text);
});

test("a request that a newer one replaces resolves to null", async () => {
  const client = createLocalClient();
  const long = fixture.texts.join(" ").repeat(9);
  const first = client.translate(long);
  await new Promise((resolve) => setTimeout(resolve, 1)); // it has begun
  const second = client.translate(fixture.texts[0]);
  assert.equal(await first, null);
  assert.equal((await second).target.text, fixture.beam[0].text);
});

test("a page that was truncated says so when it translates", async () => {
  await assert.rejects(createLocalClient(fixture.parameters.slice(0, 40)).translate("a text"), /RangeError/);
});

test("a worker that fails to start is replaced by the page, which answers what it was asked", async (context) => {
  context.after(() => delete globalThis.Worker);
  globalThis.Worker = class {
    constructor() {
      setTimeout(() => this.onerror());
    }
    postMessage() {}
    terminate() {}
  };
  const { target } = await createLocalClient().translate(fixture.texts[1]);
  assert.equal(target.text, fixture.beam[1].text);
});

test("a worker answers through its scope", async () => {
  const response = new Promise((resolve) => {
    const scope = { onmessage: null, postMessage: resolve };
    serve(scope);
    scope.onmessage({ data: { type: "load", record: fixture.record, parameters: fixture.parameters } });
    scope.onmessage({ data: { type: "translate", id: 7, text: fixture.texts[0] } });
  });
  const { id, translation } = await response;
  assert.deepEqual([id, translation.target.text], [7, fixture.beam[0].text]);
});
