/** The recurrent model: GRUs, with attention of the decoder to the encoder's states. The twin of regard.models.RecurrentModel. */
import { linearOf } from "./attention.js";
import { embed } from "./embedding.js";
import { createLinear, linear, softmax } from "./kernels.js";
import { Score } from "./score.js";

/**
 * @import { LinearRecord } from "./attention.js"
 * @import { EmbeddingRecord } from "./embedding.js"
 * @import { Linear } from "./kernels.js"
 * @import { Tensor } from "./parameters.js"
 * @import { ScoreRecord } from "./score.js"
 * @import { LayerWeights } from "./transformer.js"
 * @typedef {{input: LinearRecord, hidden: LinearRecord}} CellRecord
 * @typedef {{kind: "recurrent", source_embedding: EmbeddingRecord, target_embedding: EmbeddingRecord,
 *   encoder: {forward: CellRecord, backward: CellRecord}[], decoder: CellRecord[], init_projection: LinearRecord,
 *   key_projection: LinearRecord|null, score: ScoreRecord, use_attention: boolean, pre_output: LinearRecord,
 *   output: number}} RecurrentRecord
 * @typedef {{input: Linear, hidden: Linear}} Cell
 * @typedef {{length: number, keys: Float32Array, values: Float32Array, hidden: Float32Array[]}} EncodedStates
 * `hidden` is the first state of each layer of the decoder.
 * @typedef {{hidden: Float32Array[], source: EncodedStates}} RecurrentState one row per beam
 */

/** @param {CellRecord} record @param {Tensor[]} tensors @returns {Cell} */
const cellOf = ({ input, hidden }, tensors) => ({ input: linearOf(input, tensors), hidden: linearOf(hidden, tensors) });

export class RecurrentModel {
  /** @param {RecurrentRecord} record @param {Tensor[]} tensors */
  constructor(record, tensors) {
    this.tensors = tensors;
    this.sourceEmbedding = record.source_embedding;
    this.targetEmbedding = record.target_embedding;
    this.encoder = record.encoder.map(({ forward, backward }) => [cellOf(forward, tensors), cellOf(backward, tensors)]);
    this.decoder = record.decoder.map((cell) => cellOf(cell, tensors));
    this.initProjection = linearOf(record.init_projection, tensors);
    this.keyProjection = record.key_projection && linearOf(record.key_projection, tensors);
    this.score = new Score(record.score, tensors);
    this.useAttention = record.use_attention;
    this.preOutput = linearOf(record.pre_output, tensors);
    this.output = createLinear(tensors[record.output], null);
    this.width = this.initProjection.outputs;
  }

  /**
   * Encode the source in both directions and project its keys, once.
   * @param {number[]} tokens
   * @param {() => Promise<void>} pause awaited before every layer
   * @returns {Promise<{source: EncodedStates, weights: LayerWeights[]}>}
   */
  async encode(tokens, pause) {
    const { length } = tokens;
    const hidden = [];
    let states = embed(this.sourceEmbedding, tokens, (row) => row, this.tensors);
    for (const [forward, backward] of this.encoder) {
      await pause();
      const [there, back] = [this.scan(forward, states, length, false), this.scan(backward, states, length, true)];
      // the decoder starts from the backward direction, which has just read the first word
      hidden.push(linear(this.initProjection, back.slice(0, this.width), 1).map(Math.tanh));
      states = concatRows(length, there, back);
    }
    const keys = this.keyProjection ? linear(this.keyProjection, states, length) : states;
    return { source: { length, keys: this.score.prepareKeys(keys, keys.length / length), values: states, hidden }, weights: [] };
  }

  /**
   * Return the states of a cell that reads rows in order, or backwards.
   * @param {Cell} cell
   * @param {Float32Array} rows
   * @param {number} length
   * @param {boolean} isBackward
   */
  scan(cell, rows, length, isBackward) {
    const width = rows.length / length;
    const states = new Float32Array(length * this.width);
    let hidden = new Float32Array(this.width);
    for (let step = 0; step < length; step++) {
      const n = isBackward ? length - 1 - step : step;
      hidden = advance(cell, rows.subarray(n * width, (n + 1) * width), hidden, 1);
      states.set(hidden, n * this.width);
    }
    return states;
  }

  /** Return the state before the first step, with one beam. @param {EncodedStates} source @returns {RecurrentState} */
  initState(source) {
    return { hidden: source.hidden, source };
  }

  /**
   * Decode one more token of every beam: attend from the last state, then feed the token.
   * @param {number[]} tokens
   * @param {RecurrentState} state
   */
  step(tokens, { hidden, source }) {
    const beams = tokens.length;
    const embedded = embed(this.targetEmbedding, tokens, () => 0, this.tensors);
    const { context, weights } = this.attend(hidden[hidden.length - 1], beams, source);
    let inputs = concatRows(beams, embedded, context);
    const next = this.decoder.map((cell, layer) => (inputs = advance(cell, inputs, hidden[layer], beams)));
    const read = concatRows(beams, next[next.length - 1], context, embedded);
    const output = linear(this.preOutput, read, beams).map(Math.tanh);
    return {
      logits: linear(this.output, output, beams),
      state: { hidden: next, source },
      decoder: /** @type {LayerWeights[]} */ ([]),
      cross: [weights],
    };
  }

  /**
   * Return the state in which each beam continues the given one.
   * @param {RecurrentState} state
   * @param {number[]} beams
   * @returns {RecurrentState}
   */
  reorder({ hidden, source }, beams) {
    const { width } = this;
    const pick = (/** @type {Float32Array} */ rows) => {
      const picked = new Float32Array(beams.length * width);
      beams.forEach((beam, n) => picked.set(rows.subarray(beam * width, (beam + 1) * width), n * width));
      return picked;
    };
    return { hidden: hidden.map(pick), source };
  }

  /**
   * Attend from each beam's state to the source; without attention, to its last token.
   * @param {Float32Array} states
   * @param {number} beams
   * @param {EncodedStates} source
   */
  attend(states, beams, { length, keys, values }) {
    const queries = this.score.prepareQueries(states.slice(), this.width);
    const [compared, width] = [keys.length / length, values.length / length];
    const context = new Float32Array(beams * width);
    const weights = [];
    for (let beam = 0; beam < beams; beam++) {
      const row = new Float32Array(length).fill(-Infinity);
      for (let n = this.useAttention ? 0 : length - 1; n < length; n++) row[n] = this.score.at(queries, beam * compared, keys, n * compared, compared);
      softmax(row);
      for (let i = 0; i < width; i++) {
        let sum = 0;
        for (let n = 0; n < length; n++) sum += row[n] * values[n * width + i];
        context[beam * width + i] = sum;
      }
      weights.push(row);
    }
    return { context, weights };
  }
}

/**
 * Return the next states of a gated recurrent unit (Cho et al. 2014), with the reset gate after the product as in torch.
 * @param {Cell} cell
 * @param {Float32Array} inputs
 * @param {Float32Array} hidden
 * @param {number} rows
 */
function advance({ input, hidden: recurrent }, inputs, hidden, rows) {
  const width = recurrent.inputs;
  const fromInput = linear(input, inputs, rows);
  const fromHidden = linear(recurrent, hidden, rows);
  const states = new Float32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i++) {
      const gate = row * 3 * width + i; // reset, update, new
      const reset = sigmoid(fromInput[gate] + fromHidden[gate]);
      const update = sigmoid(fromInput[gate + width] + fromHidden[gate + width]);
      const candidate = Math.tanh(fromInput[gate + 2 * width] + reset * fromHidden[gate + 2 * width]);
      states[row * width + i] = (1 - update) * candidate + update * hidden[row * width + i];
    }
  }
  return states;
}

/** @param {number} x */
function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

/** Concatenate arrays row by row. @param {number} rows @param {...Float32Array} parts */
function concatRows(rows, ...parts) {
  const widths = parts.map((part) => part.length / rows);
  const joined = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (let row = 0; row < rows; row++) {
    parts.forEach((part, n) => {
      joined.set(part.subarray(row * widths[n], (row + 1) * widths[n]), at);
      at += widths[n];
    });
  }
  return joined;
}
