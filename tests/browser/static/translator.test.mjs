import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Translator } from "../../../src/regard/browser/static/translator.js";
import { parseTrace } from "../../../src/regard/viz/static/trace.js";

const fixtures = JSON.parse(readFileSync(`${process.env.REGARD_FIXTURES}/models.json`));

const assertClose = (actual, expected, tolerance, message) => {
  assert.ok(Math.abs(actual - expected) <= tolerance, `${message}: ${actual} is not ${expected}`);
};

for (const [name, fixture] of Object.entries(fixtures)) {
  const translator = new Translator(fixture.record, fixture.parameters);

  test(`${name}: beam search finds the translations of torch`, async () => {
    for (const [n, { tokens, text, score }] of fixture.beam.entries()) {
      const translation = await translator.translate(fixture.texts[n]);
      assert.deepEqual(translation.tokens, tokens, fixture.texts[n]);
      assert.equal(translation.target.text, text);
      assertClose(translation.score, score, 1e-4, "score");
    }
  });

  test(`${name}: greedy search finds the translations of torch`, async () => {
    for (const [n, { tokens }] of fixture.greedy.entries()) {
      const translation = await translator.translate(fixture.texts[n], { beamSize: 1 });
      assert.deepEqual(translation.tokens, tokens, fixture.texts[n]);
    }
  });

  test(`${name}: the trace has the tokens and weights of torch`, async () => {
    for (const [n, expected] of fixture.traces.entries()) {
      const { trace } = await translator.translate(fixture.texts[n]);
      const { log_probs: logProbs, ...target } = trace.tokens.target;
      const { log_probs: expectedLogProbs, ...expectedTarget } = expected.tokens.target;
      const withoutPadding = ({ padding, ...list }) => list;
      assert.equal(trace.title, expected.title);
      assert.deepEqual(target, withoutPadding(expectedTarget));
      assert.deepEqual(trace.tokens.source, withoutPadding(expected.tokens.source));
      assert.deepEqual(trace.tokens.decoder_input, withoutPadding(expected.tokens.decoder_input));
      expectedLogProbs.forEach((logProb, at) => assertClose(logProbs[at], logProb, 1e-3, "log-probability")); // rounded to 4 decimals
      assert.equal(trace.maps.length, expected.maps.length);
      parseTrace(trace).maps.forEach(({ weights, summary, call, call_site, ...map }, at) => {
        const { values, ...expectedMap } = expected.maps[at];
        assert.deepEqual(map, expectedMap);
        values.forEach((value, cell) => assertClose(weights.values[cell] * weights.scale, value, 3e-5, `${map.name}[${cell}]`));
      });
    }
  });
}

test("an empty text has an empty translation and no trace", async () => {
  const [fixture] = Object.values(fixtures);
  const translation = await new Translator(fixture.record, fixture.parameters).translate(" \n");
  assert.deepEqual([translation.target.text, translation.tokens, translation.trace], ["", [], null]);
});

test("a search that is cancelled ends before its next step", async () => {
  const [fixture] = Object.values(fixtures);
  const translator = new Translator(fixture.record, fixture.parameters);
  let steps = 0;
  const pause = async () => {
    if (++steps === 4) throw new Error("cancelled");
  };
  await assert.rejects(translator.translate(fixture.texts[0], { pause }), /cancelled/);
  assert.equal(steps, 4);
});
