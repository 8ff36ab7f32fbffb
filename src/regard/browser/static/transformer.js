/** The Transformer: an encoder, and a decoder that writes one token of every beam at a time. */
import { linearOf, MultiHeadAttention } from "./attention.js";
import { embed } from "./embedding.js";
import { ACTIVATIONS, add, createLinear, layerNorm, linear } from "./kernels.js";
import { KVCache } from "./kvCache.js";

/**
 * @import { AttentionRecord, KeyValues, LinearRecord } from "./attention.js"
 * @import { EmbeddingRecord } from "./embedding.js"
 * @import { Norm } from "./kernels.js"
 * @import { Tensor } from "./parameters.js"
 * @typedef {{weight: number, bias: number|null, eps: number}} NormRecord
 * @typedef {NormRecord & {is_pre_norm: boolean}} ResidualRecord
 * @typedef {{up: LinearRecord, down: LinearRecord, activation: "relu"|"gelu"}} FeedForwardRecord
 * @typedef {{attention: AttentionRecord, attention_residual: ResidualRecord, cross: AttentionRecord|null,
 *   cross_residual: ResidualRecord|null, feed_forward: FeedForwardRecord, feed_forward_residual: ResidualRecord}} LayerRecord
 * @typedef {{layers: LayerRecord[], norm: NormRecord|null}} StackRecord
 * @typedef {{kind: "transformer", source_embedding: EmbeddingRecord, target_embedding: EmbeddingRecord, encoder: StackRecord,
 *   decoder: StackRecord, output: number}} TransformerRecord
 * @typedef {{length: number, keyValues: (KeyValues|null)[]}} EncodedSource keys and values for each layer of the decoder
 * @typedef {Float32Array[]} LayerWeights of each query, (head, key)
 * @typedef {{steps: number, rows: number, caches: KVCache[], paths: number[][], source: EncodedSource}} DecoderState
 * `paths` has, for each beam, the rows of the caches that hold its tokens, so that beams share what they have in common.
 * @typedef {{logits: Float32Array, state: DecoderState, decoder: LayerWeights[], cross: LayerWeights[]}} Step
 * Logits (beam, token), and the weights of each layer.
 */

/** A sublayer with its residual connection and norm, before it (pre-norm) or after the sum. */
class Residual {
  /** @param {ResidualRecord} record @param {Tensor[]} tensors */
  constructor(record, tensors) {
    this.norm = normOf(record, tensors);
    this.isPreNorm = record.is_pre_norm;
  }

  /** @param {Float32Array} states @param {(inputs: Float32Array) => Float32Array} sublayer */
  apply(states, sublayer) {
    if (this.isPreNorm) return add(states, sublayer(layerNorm(this.norm, states)));
    return layerNorm(this.norm, add(states, sublayer(states)));
  }
}

class Layer {
  /** @param {LayerRecord} record @param {Tensor[]} tensors */
  constructor(record, tensors) {
    const { up, down, activation } = record.feed_forward;
    this.attention = new MultiHeadAttention(record.attention, tensors);
    this.attentionResidual = new Residual(record.attention_residual, tensors);
    this.cross = record.cross && new MultiHeadAttention(record.cross, tensors);
    this.crossResidual = record.cross_residual && new Residual(record.cross_residual, tensors);
    this.up = linearOf(up, tensors);
    this.down = linearOf(down, tensors);
    this.activate = ACTIVATIONS[activation];
    this.feedForwardResidual = new Residual(record.feed_forward_residual, tensors);
  }

  /** @param {Float32Array} states @param {number} rows */
  feedForward(states, rows) {
    return this.feedForwardResidual.apply(states, (inputs) => {
      const hidden = linear(this.up, inputs, rows);
      this.activate(hidden);
      return linear(this.down, hidden, rows);
    });
  }

  /**
   * Apply the layer to all positions of a source, each of which sees all others.
   * @param {Float32Array} states
   * @param {number} length
   */
  encode(states, length) {
    const everything = range(length);
    const positionOf = (/** @type {number} */ row) => row;
    let weights = /** @type {LayerWeights} */ ([]);
    const attended = this.attentionResidual.apply(states, (inputs) => {
      const memory = this.attention.projectKeyValues(inputs, length, positionOf);
      const queries = this.attention.projectQueries(inputs, length, positionOf);
      const result = this.attention.attend(queries, length, memory, () => everything, positionOf);
      weights = result.weights;
      return result.output;
    });
    return { states: this.feedForward(attended, length), weights };
  }

  /**
   * Apply the layer to the newest token of every beam.
   * @param {Float32Array} states
   * @param {DecoderState} state with the paths of this step
   * @param {KVCache} cache extended in place
   * @param {KeyValues|null} source
   */
  step(states, { paths, rows, steps, source: { length } }, cache, source) {
    const beams = paths.length;
    const positionOf = () => steps;
    const { attention, cross, crossResidual } = this;
    let weights = /** @type {LayerWeights} */ ([]);
    let crossWeights = /** @type {LayerWeights} */ ([]);
    states = this.attentionResidual.apply(states, (inputs) => {
      cache.write(attention.projectKeyValues(inputs, beams, positionOf), rows);
      const queries = attention.projectQueries(inputs, beams, positionOf);
      const result = attention.attend(queries, beams, cache, (beam) => paths[beam], positionOf);
      weights = result.weights;
      return result.output;
    });
    if (cross && crossResidual && source) {
      const everything = range(length);
      states = crossResidual.apply(states, (inputs) => {
        const queries = cross.projectQueries(inputs, beams, positionOf);
        const result = cross.attend(queries, beams, source, () => everything, positionOf);
        crossWeights = result.weights;
        return result.output;
      });
    }
    return { states: this.feedForward(states, beams), weights, crossWeights };
  }
}

export class Transformer {
  /** @param {TransformerRecord} architecture @param {Tensor[]} tensors */
  constructor(architecture, tensors) {
    this.tensors = tensors;
    this.sourceEmbedding = architecture.source_embedding;
    this.targetEmbedding = architecture.target_embedding;
    this.encoderLayers = architecture.encoder.layers.map((record) => new Layer(record, tensors));
    this.decoderLayers = architecture.decoder.layers.map((record) => new Layer(record, tensors));
    this.encoderNorm = architecture.encoder.norm && normOf(architecture.encoder.norm, tensors);
    this.decoderNorm = architecture.decoder.norm && normOf(architecture.decoder.norm, tensors);
    this.output = createLinear(tensors[architecture.output], null);
  }

  /**
   * Encode a source, and project keys and values for every layer of the decoder, once.
   * @param {number[]} tokens
   * @param {() => Promise<void>} pause awaited before every layer
   * @returns {Promise<{source: EncodedSource, weights: LayerWeights[]}>}
   */
  async encode(tokens, pause) {
    const { length } = tokens;
    let states = embed(this.sourceEmbedding, tokens, (row) => row, this.tensors);
    const weights = [];
    for (const layer of this.encoderLayers) {
      await pause();
      const result = layer.encode(states, length);
      states = result.states;
      weights.push(result.weights);
    }
    if (this.encoderNorm) states = layerNorm(this.encoderNorm, states);
    const keyValues = this.decoderLayers.map(({ cross }) => cross && cross.projectKeyValues(states, length, (row) => row));
    return { source: { length, keyValues }, weights };
  }

  /** Return the state before the first step, with one beam. @param {EncodedSource} source @returns {DecoderState} */
  initState(source) {
    const caches = this.decoderLayers.map(({ attention }) => new KVCache(attention.keyHeads * attention.comparedWidth, attention.keyHeads * attention.headWidth));
    return { steps: 0, rows: 0, caches, paths: [[]], source };
  }

  /**
   * Decode one more token of every beam. The caches of the state are extended in place; what follows from an older state
   * overwrites their newest rows.
   * @param {number[]} tokens
   * @param {DecoderState} state
   * @returns {Step}
   */
  step(tokens, { steps, rows, caches, paths, source }) {
    const grown = { steps, rows, caches, paths: paths.map((path, beam) => [...path, rows + beam]), source };
    let states = embed(this.targetEmbedding, tokens, () => steps, this.tensors);
    const [decoder, cross] = [/** @type {LayerWeights[]} */ ([]), /** @type {LayerWeights[]} */ ([])];
    this.decoderLayers.forEach((layer, n) => {
      const result = layer.step(states, grown, caches[n], source.keyValues[n]);
      states = result.states;
      decoder.push(result.weights);
      if (layer.cross) cross.push(result.crossWeights);
    });
    if (this.decoderNorm) states = layerNorm(this.decoderNorm, states);
    const logits = linear(this.output, states, tokens.length);
    return { logits, state: { ...grown, steps: steps + 1, rows: rows + tokens.length }, decoder, cross };
  }

  /**
   * Return the state in which each beam continues the given one.
   * @param {DecoderState} state
   * @param {number[]} beams
   * @returns {DecoderState}
   */
  reorder(state, beams) {
    return { ...state, paths: beams.map((beam) => state.paths[beam]) };
  }
}

/** @param {NormRecord} record @param {Tensor[]} tensors @returns {Norm} */
function normOf({ weight, bias, eps }, tensors) {
  return { weight: tensors[weight].values, bias: bias === null ? null : tensors[bias].values, eps };
}

/** @param {number} length */
function range(length) {
  return Int32Array.from({ length }, (_, n) => n);
}
