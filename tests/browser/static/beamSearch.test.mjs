import assert from "node:assert/strict";
import { test } from "node:test";

import { beamSearch, maxTargetLength, selectCandidates } from "../../../src/regard/browser/static/beamSearch.js";
import { BOS, EOS } from "../../../src/regard/browser/static/tokenizer.js";

const OPTIONS = { beamSize: 2, lengthPenalty: 1, maxLength: 9 };
const pause = async () => {};

/** Return a model of six tokens whose log-probabilities after some tokens are those of a table, else even. */
function tableModel(table) {
  return {
    initState: () => ({ paths: [[]] }),
    reorder: (state, beams) => ({ paths: beams.map((beam) => state.paths[beam]) }),
    step(tokens, state) {
      const paths = state.paths.map((path, beam) => [...path, tokens[beam]]);
      const logits = paths.flatMap((path) => {
        const probabilities = table[path.slice(1).join(" ")] ?? { 3: 0.25, 4: 0.25, 5: 0.25 };
        return Array.from({ length: 6 }, (_, token) => Math.log(probabilities[token] ?? 1e-9));
      });
      return { logits: Float32Array.from(logits), state: { paths } };
    },
  };
}

test("as many beams go on as before, also after some have ended", async () => {
  const model = tableModel({ "": { [EOS]: 0.5, 3: 0.3, 4: 0.2 }, 3: { 3: 0.4, 5: 0.3, 4: 0.3 }, 4: { 5: 1 }, "4 5": { [EOS]: 1 } });
  const found = await beamSearch(model, {}, OPTIONS, pause);
  assert.deepEqual(found.map(({ tokens }) => tokens).sort(), [[], [4, 5]]);
});

test("hypotheses come best first, by a log-probability that is divided by a power of the length", async () => {
  const model = tableModel({ "": { [EOS]: 0.4, 3: 0.6 }, 3: { [EOS]: 0.9, 4: 0.1 } });
  const best = async (lengthPenalty) => (await beamSearch(model, {}, { ...OPTIONS, lengthPenalty }, pause)).map(({ tokens }) => tokens);
  assert.deepEqual(await best(1), [[3], []]);
  assert.deepEqual(await best(-3), [[], [3]]);
  const [{ logProbs, score }] = await beamSearch(model, {}, { ...OPTIONS, lengthPenalty: 2 }, pause);
  assert.deepEqual(logProbs.map((logProb) => Math.exp(logProb).toFixed(5)), ["0.60000", "0.90000"]);
  assert.ok(Math.abs(score - Math.log(0.54) / 4) < 1e-6);
});

test("greedy search takes the most probable token at every step", async () => {
  const model = tableModel({ "": { 3: 0.6, 4: 0.4 }, 3: { 5: 0.5, [EOS]: 0.4 }, 4: { [EOS]: 1 }, "3 5": { [EOS]: 1 } });
  const [{ tokens }] = await beamSearch(model, {}, { ...OPTIONS, beamSize: 1 }, pause);
  assert.deepEqual(tokens, [3, 5]);
});

test("a translation ends at the greatest length", async () => {
  const [{ tokens }] = await beamSearch(tableModel({}), {}, { ...OPTIONS, maxLength: 4 }, pause);
  assert.equal(tokens.length, 4);
  assert.deepEqual([maxTargetLength(1, null), maxTargetLength(32, null), maxTargetLength(33, null), maxTargetLength(33, 50)], [84, 84, 148, 49]);
});

test("PAD and BOS are never written, and only EOS at the last step", () => {
  const logits = Float32Array.from([9, 8, 1, 7, 2, 3, 9, 8, 0, 1, 6, 2]); // two beams, six tokens
  assert.equal(BOS, 1);
  assert.deepEqual(selectCandidates(logits, [0, 0], 3, false).map(({ beam, token }) => [beam, token]), [[0, 3], [1, 4], [0, 5]]);
  assert.deepEqual(selectCandidates(logits, [-5, 0], 3, true).map(({ beam, token }) => [beam, token]), [[1, 2], [0, 2]]);
});

test("logits that are not numbers give no candidates, and the search says so", async () => {
  assert.deepEqual(selectCandidates(new Float32Array(6).fill(NaN), [0], 3, false), []);
  const model = { ...tableModel({}), step: (_, state) => ({ logits: new Float32Array(6).fill(NaN), state }) };
  await assert.rejects(beamSearch(model, {}, OPTIONS, pause), /logits are not numbers/);
});
