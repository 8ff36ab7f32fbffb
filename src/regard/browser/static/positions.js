/** Positions: sinusoidal and learned vectors, rotary angles. The twin of regard.positions; ALiBi's slopes are data. */

/**
 * @import { Tensor } from "./parameters.js"
 * @typedef {{kind: "sinusoidal", base: number}|{kind: "learned", table: number}} EmbeddingPositions
 * @typedef {{kind: "rotary", width: number, base: number, interleaved: boolean}} RotaryRecord
 */

/**
 * Add the vectors of consecutive positions to rows, in place.
 * @param {Float32Array} rows
 * @param {number} width
 * @param {(row: number) => number} positionOf
 * @param {EmbeddingPositions} record
 * @param {Tensor[]} tensors
 */
export function addPositions(rows, width, positionOf, record, tensors) {
  const table = record.kind === "learned" ? tensors[record.table].values : null;
  for (let row = 0; row < rows.length / width; row++) {
    const position = positionOf(row);
    for (let i = 0; i < width; i++) {
      rows[row * width + i] += table ? table[position * width + i] : wave(position, i, width, /** @type {{base: number}} */ (record).base);
    }
  }
}

/** @param {number} position @param {number} column @param {number} width @param {number} base */
function wave(position, column, width, base) {
  const pair = column >> 1;
  const angle = position * base ** ((-2 * pair) / width);
  return column % 2 ? Math.cos(angle) : Math.sin(angle);
}

/**
 * Rotate the leading components of every vector by the angles of its position, in place.
 * @param {Float32Array} vectors (row, head, component)
 * @param {number} heads
 * @param {number} headWidth
 * @param {(row: number) => number} positionOf
 * @param {RotaryRecord} record
 */
export function rotate(vectors, heads, headWidth, positionOf, { width, base, interleaved }) {
  const pairs = width / 2;
  const [step, distance] = interleaved ? [2, 1] : [1, pairs];
  for (let start = 0; start < vectors.length; start += headWidth) {
    const position = positionOf(Math.floor(start / (heads * headWidth)));
    for (let pair = 0; pair < pairs; pair++) {
      const angle = position * base ** ((-2 * pair) / width);
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      const first = start + step * pair;
      const second = first + distance;
      const [x, y] = [vectors[first], vectors[second]];
      vectors[first] = x * cosine - y * sine;
      vectors[second] = x * sine + y * cosine;
    }
  }
}
