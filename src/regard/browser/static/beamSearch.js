/** Beam search, and greedy search as a beam of one. The twin of regard.decoding.search, for one sentence. */
import { logSumExp } from "./kernels.js";
import { BOS, EOS, PAD } from "./tokenizer.js";

/**
 * @import { LayerWeights } from "./transformer.js"
 * @typedef {{initState: (source: any) => any, reorder: (state: any, beams: number[]) => any, step: (tokens: number[], state: any) =>
 *   {logits: Float32Array, state: any, decoder: LayerWeights[], cross: LayerWeights[]}}} DecoderModel what can be searched
 * @typedef {{decoder: LayerWeights[], cross: LayerWeights[], beam: number}} StepWeights of every layer, and whose row is meant
 * @typedef {{tokens: number[], score: number, logProbs: number[], weights: StepWeights[]}} Beam
 * `logProbs` and `weights` are those of every step so far.
 * @typedef {Beam} Hypothesis
 * Tokens are without BOS and EOS; the last step is that of EOS. Its score is divided by a power of the length.
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
 * @param {DecoderModel} model
 * @param {any} source what the model encoded
 * @param {SearchOptions} options
 * @param {() => Promise<void>} pause
 * @returns {Promise<Hypothesis[]>}
 */
export async function beamSearch(model, source, { beamSize, lengthPenalty, maxLength }, pause) {
  let state = model.initState(source);
  let beams = [/** @type {Beam} */ ({ tokens: [], score: 0, logProbs: [], weights: [] })];
  const finished = /** @type {Hypothesis[]} */ ([]);
  for (let length = 0; length <= maxLength && beams.length && finished.length < beamSize; length++) {
    await pause();
    const { logits, state: next, decoder, cross } = model.step(beams.map(({ tokens }) => tokens[length - 1] ?? BOS), state);
    const scores = beams.map(({ score }) => score);
    const candidates = selectCandidates(logits, scores, 2 * beamSize, length === maxLength); // half of them may have ended
    const extend = (/** @type {Candidate} */ { beam, score }) => ({
      score,
      logProbs: [...beams[beam].logProbs, score - beams[beam].score],
      weights: [...beams[beam].weights, { decoder, cross, beam }],
    });
    for (const candidate of candidates.slice(0, beamSize).filter(({ token }) => token === EOS)) {
      const { score, ...steps } = extend(candidate);
      finished.push({ ...steps, tokens: beams[candidate.beam].tokens, score: score / (length + 1) ** lengthPenalty });
    }
    const continued = candidates.filter(({ token }) => token !== EOS).slice(0, beamSize);
    beams = continued.map((candidate) => ({ ...extend(candidate), tokens: [...beams[candidate.beam].tokens, candidate.token] }));
    state = model.reorder(next, continued.map(({ beam }) => beam));
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
