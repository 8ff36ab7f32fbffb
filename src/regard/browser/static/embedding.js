/** Embedding: vectors of tokens times √width, plus their positions. */
import { addPositions } from "./positions.js";

/**
 * @import { Tensor } from "./parameters.js"
 * @import { EmbeddingPositions } from "./positions.js"
 * @typedef {{weight: number, scale: number, positions: EmbeddingPositions|null}} EmbeddingRecord
 */

/**
 * Return the embeddings of tokens, one per row.
 * @param {EmbeddingRecord} record
 * @param {number[]} tokens
 * @param {(row: number) => number} positionOf
 * @param {Tensor[]} tensors
 */
export function embed({ weight, scale, positions }, tokens, positionOf, tensors) {
  const { shape: [, width], values } = tensors[weight];
  const states = new Float32Array(tokens.length * width);
  tokens.forEach((token, row) => {
    for (let i = 0; i < width; i++) states[row * width + i] = values[token * width + i] * scale;
  });
  if (positions) addPositions(states, width, positionOf, positions, tensors);
  return states;
}
