/** Translator: text to its translation, with the attention of every layer and head. */
import { beamSearch, maxTargetLength } from "./beamSearch.js";
import { logSumExp } from "./kernels.js";
import { decodeBase64, decodeTensors } from "./parameters.js";
import { BOS, EOS, strip, Tokenizer } from "./tokenizer.js";
import { buildTrace } from "./traceRecord.js";
import { Transformer } from "./transformer.js";
import { findWords } from "./words.js";

/**
 * @import { TraceRecord } from "../../viz/static/trace.js"
 * @import { TensorRecord } from "./parameters.js"
 * @import { Span, TokenizerRecord } from "./tokenizer.js"
 * @import { AttentionWeights } from "./traceRecord.js"
 * @import { Architecture, EncodedSource, LayerWeights } from "./transformer.js"
 * @typedef {{name: string, architecture: Architecture, tensors: TensorRecord[], max_positions: number|null,
 *   search: {beam_size: number, length_penalty: number}, alignment_head: [layer: number, head: number]|null,
 *   examples: string[], source_tokenizer: TokenizerRecord, target_tokenizer: TokenizerRecord|null}} ModelRecord
 * @typedef {{text: string, words: Span[]}} TextWords
 * @typedef {{source: TextWords, target: TextWords, tokens: number[], score: number, trace: TraceRecord|null}} Translation
 * There is no trace if nothing was read or written.
 */

export class Translator {
  /** @param {ModelRecord} record @param {string} parameters in base64 */
  constructor(record, parameters) {
    this.record = record;
    this.model = new Transformer(record.architecture, decodeTensors(record.tensors, decodeBase64(parameters)));
    this.source = new Tokenizer(record.source_tokenizer);
    this.target = record.target_tokenizer ? new Tokenizer(record.target_tokenizer) : this.source;
  }

  /**
   * Translate a text, and look where the model attends while it writes the translation.
   * @param {string} input white space around which is ignored
   * @param {{beamSize?: number, pause?: () => Promise<void>}} [options] `pause` is awaited before every step, and may
   *   throw to cancel the translation
   * @returns {Promise<Translation>}
   */
  async translate(input, { beamSize = this.record.search.beam_size, pause = async () => {} } = {}) {
    const text = strip(input);
    const { max_positions: maxPositions, search: { length_penalty: lengthPenalty }, name } = this.record;
    const ids = this.source.encode(text).slice(0, maxPositions ?? Infinity);
    if (!ids.length) return { source: { text, words: [] }, target: { text: "", words: [] }, tokens: [], score: 0, trace: null };
    const { source, weights: encoder } = await this.model.encode(ids, pause);
    const options = { beamSize, lengthPenalty, maxLength: maxTargetLength(ids.length, maxPositions) };
    const [{ tokens, score }] = await beamSearch(this.model, source, options, pause);
    const { logProbs, weights } = await this.decode(source, tokens, pause);
    const written = this.target.decode(tokens);
    const from = { tokenizer: this.source, ids, text, words: findWords(text) };
    const to = { tokenizer: this.target, ids: tokens, text: written, words: findWords(written) };
    return {
      source: { text, words: from.words },
      target: { text: written, words: to.words },
      tokens,
      score,
      trace: tokens.length ? buildTrace(from, to, logProbs, { ...weights, encoder }, name) : null,
    };
  }

  /**
   * Decode a target once more, token by token, for the attention weights of its own steps alone.
   * @param {EncodedSource} source
   * @param {number[]} tokens
   * @param {() => Promise<void>} pause
   */
  async decode(source, tokens, pause) {
    const { decoderLayers } = this.model;
    const decoder = decoderLayers.map(() => /** @type {LayerWeights} */ ([]));
    const cross = decoderLayers.filter((layer) => layer.cross).map(() => /** @type {LayerWeights} */ ([]));
    const logProbs = [];
    let state = this.model.initState(source);
    const inputs = [BOS, ...tokens];
    for (let n = 0; n < inputs.length; n++) {
      await pause();
      const step = this.model.step([inputs[n]], state);
      state = step.state;
      step.decoder.forEach(([weights], layer) => decoder[layer].push(weights));
      step.cross.forEach(([weights], layer) => cross[layer].push(weights));
      logProbs.push(step.logits[[...tokens, EOS][n]] - logSumExp(step.logits));
    }
    return { logProbs, weights: { decoder, cross } };
  }
}
