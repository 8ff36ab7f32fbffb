/** Beam search, and greedy search as a beam of one. The twin of regard.decoding.search, for one sentence. */
import { logSumExp } from "./kernels.js";
import { BOS, EOS, PAD } from "./tokenizer.js";
import { reorder } from "./transformer.js";

/**
 * @import { EncodedSource, Transformer } from "./transformer.js"
 * @typedef {{tokens: number[], logProb: number, score: number}} Hypothesis tokens without BOS and EOS
 * @typedef {{score: number, beam: number, token: number}} Candidate a continuation of a beam, with the sum of its log-probabilities
 * @typedef {{beamSize: number, lengthPenalty: number, maxLength: number}} SearchOptions
 */

const LENGTH_STEP = 32; // as in regard.decoding.batching

/**
 * Return the greatest length of a translation.
 * @param {number} sourceLength
 * @param {number|null} maxPositions of the model
 */
export function maxTargetLength(sourceLength, maxPositions) {
  const length = 2 * LENGTH_STEP * Math.ceil(sourceLength / LENGTH_STEP) + 20;
  return maxPositions === null ? length : Math.min(length, maxPositions - 1); // BOS takes a position
}

/**
 * Search until `beamSize` hypotheses have ended; return them, best first. `pause` is awaited before every step, and may
 * throw to cancel the search.
 * @param {Transformer} model
 * @param {EncodedSource} source
 * @param {SearchOptions} options
 * @param {() => Promise<void>} pause
 * @returns {Promise<Hypothesis[]>}
 */
export async function beamSearch(model, source, { beamSize, lengthPenalty, maxLength }, pause) {
  let state = model.initState(source);
  let beams = [{ tokens: [BOS], score: 0 }];
  const finished = /** @type {Hypothesis[]} */ ([]);
  for (let length = 0; length <= maxLength && beams.length && finished.length < beamSize; length++) {
    await pause();
    const step = model.step(beams.map(({ tokens }) => tokens[tokens.length - 1]), state);
    const isLast = length === maxLength;
    const scores = beams.map(({ score }) => score);
    const candidates = selectCandidates(step.logits, scores, 2 * beamSize, isLast); // half of them may have ended
    candidates.slice(0, beamSize).filter(({ token }) => token === EOS).forEach(({ beam, score }) => {
      finished.push({ tokens: beams[beam].tokens.slice(1), logProb: score, score: score / (length + 1) ** lengthPenalty });
    });
    const continued = candidates.filter(({ token }) => token !== EOS).slice(0, beamSize);
    state = reorder(step.state, continued.map(({ beam }) => beam));
    beams = continued.map(({ beam, token, score }) => ({ tokens: [...beams[beam].tokens, token], score }));
  }
  if (!finished.length) throw new Error("the model's logits are not numbers, so there is no translation");
  return finished.sort((a, b) => b.score - a.score);
}

/**
 * Return the best continuations of all beams, best first. PAD and BOS are never written, and only EOS at the last step.
 * @param {Float32Array} logits (beam, token)
 * @param {number[]} scores of the beams
 * @param {number} count
 * @param {boolean} isLast
 * @returns {Candidate[]}
 */
export function selectCandidates(logits, scores, count, isLast) {
  const size = logits.length / scores.length;
  const best = /** @type {Candidate[]} */ ([]);
  scores.forEach((beamScore, beam) => {
    const row = logits.subarray(beam * size, (beam + 1) * size);
    const base = beamScore - logSumExp(row);
    for (let token = 0; token < (isLast ? EOS + 1 : size); token++) {
      const score = base + row[token];
      const isWorse = best.length === count && !(score > best[count - 1].score);
      if (isWorse || !Number.isFinite(score) || token === PAD || token === BOS) continue;
      if (best.length === count) best.pop();
      let at = best.length;
      while (at > 0 && best[at - 1].score < score) at--;
      best.splice(at, 0, { score, beam, token });
    }
  });
  return best;
}
