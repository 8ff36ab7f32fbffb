/** Translator: text to its translation, with the attention of every layer and head. */
import { beamSearch, maxTargetLength } from "./beamSearch.js";
import { decodeBase64, decodeTensors } from "./parameters.js";
import { RecurrentModel } from "./recurrent.js";
import { strip, Tokenizer } from "./tokenizer.js";
import { buildTrace } from "./traceRecord.js";
import { Transformer } from "./transformer.js";
import { findWords } from "./words.js";

/**
 * @import { TraceRecord } from "../../viz/static/trace.js"
 * @import { StepWeights } from "./beamSearch.js"
 * @import { TensorRecord } from "./parameters.js"
 * @import { RecurrentRecord } from "./recurrent.js"
 * @import { Span, TokenizerRecord } from "./tokenizer.js"
 * @import { TransformerRecord } from "./transformer.js"
 * @typedef {{name: string, architecture: TransformerRecord|RecurrentRecord, tensors: TensorRecord[], max_positions: number|null,
 *   search: {beam_size: number, length_penalty: number}, alignment_head: [layer: number, head: number]|null,
 *   examples: string[], training_words: string[]|null, source_tokenizer: TokenizerRecord, target_tokenizer: TokenizerRecord|null}} ModelRecord
 * @typedef {{text: string, words: Span[]}} TextWords
 * @typedef {{source: TextWords, target: TextWords, tokens: number[], score: number, trace: TraceRecord|null}} Translation
 * There is no trace if nothing was read or written.
 */

export class Translator {
  /** @param {ModelRecord} record @param {string} parameters in base64 */
  constructor(record, parameters) {
    this.record = record;
    const { architecture } = record;
    const tensors = decodeTensors(record.tensors, decodeBase64(parameters));
    this.model = architecture.kind === "recurrent" ? new RecurrentModel(architecture, tensors) : new Transformer(architecture, tensors);
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
    const [{ tokens, score, logProbs, weights }] = await beamSearch(this.model, source, options, pause);
    const written = this.target.decode(tokens);
    const from = { tokenizer: this.source, ids, text, words: findWords(text) };
    const to = { tokenizer: this.target, ids: tokens, text: written, words: findWords(written) };
    return {
      source: { text, words: from.words },
      target: { text: written, words: to.words },
      tokens,
      score,
      trace: tokens.length ? buildTrace(from, to, logProbs, { encoder, ...byLayer(weights) }, name) : null,
    };
  }
}

/** Return the weights of the steps of a hypothesis by layer. @param {StepWeights[]} steps */
function byLayer(steps) {
  const rowsOf = (/** @type {"decoder"|"cross"} */ kind) => steps[0][kind].map((_, layer) => steps.map((step) => step[kind][layer][step.beam]));
  return { decoder: rowsOf("decoder"), cross: rowsOf("cross") };
}
