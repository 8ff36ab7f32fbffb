/** Trace of a translation in the format of the viewer. The twin of regard.runs.tracing and regard.trace. */
import { FORMAT_VERSION } from "../../viz/static/trace.js";
import { EOS, BOS, SPECIAL_TOKENS } from "./tokenizer.js";
import { assignWords } from "./words.js";

/**
 * @import { AttentionMapRecord, QuantizedRecord, TokenListRecord, TraceRecord } from "../../viz/static/trace.js"
 * @import { Span, Tokenizer } from "./tokenizer.js"
 * @import { LayerWeights } from "./transformer.js"
 * @typedef {{encoder: LayerWeights[], decoder: LayerWeights[], cross: LayerWeights[]}} AttentionWeights of every layer
 * @typedef {{tokenizer: Tokenizer, ids: number[], text: string, words: Span[]}} Side
 */

const MAX_16_BIT_WEIGHTS = 250_000; // as in regard.viz.page
const MAX_WEIGHTS = 2_500_000;
const CHUNK = 0x2000; // bytes that are turned into characters at a time

/**
 * Build the trace of a translation; of a text so long that the weights do not fit, it has the maps that do, those of
 * cross-attention first.
 * @param {Side} source
 * @param {Side} target
 * @param {number[]} logProbs of the target tokens and EOS
 * @param {AttentionWeights} weights
 * @param {string} model its name
 * @returns {TraceRecord}
 */
export function buildTrace(source, target, logProbs, weights, model) {
  const [read, written] = [tokenList(source), tokenList(target)];
  const words = written.words ?? [];
  const end = { pieces: [...written.pieces, SPECIAL_TOKENS[EOS]], words: [...words, null], special: [written.pieces.length] };
  const start = { pieces: [SPECIAL_TOKENS[BOS], ...written.pieces], words: [null, ...words], special: [0] };
  const [sourceLength, targetLength] = [read.pieces.length, end.pieces.length];
  const maps = [
    ...buildMaps("encoder", "self", "source", "source", weights.encoder, sourceLength),
    ...buildMaps("decoder", "causal", "decoder_input", "decoder_input", weights.decoder, targetLength),
    ...buildMaps("cross", "cross", "target", "source", weights.cross, sourceLength),
  ];
  const fitting = fittingMaps(maps);
  const count = fitting.reduce((sum, { values }) => sum + values.length, 0);
  return {
    format: "regard trace",
    version: FORMAT_VERSION,
    title: `${source.text} → ${target.text}`,
    model,
    tokens: { source: read, target: { ...end, log_probs: logProbs }, decoder_input: start },
    maps: fitting.map(({ values, ...map }) => ({ ...map, weights: quantize(values, map.shape, count > MAX_16_BIT_WEIGHTS ? 8 : 16) })),
  };
}

/** @param {Side} side @returns {TokenListRecord} */
function tokenList({ tokenizer, ids, words }) {
  return { pieces: ids.map((id) => tokenizer.tokens[id]), words: assignWords(tokenizer.offsets(ids), words), special: [] };
}

/**
 * @typedef {AttentionMapRecord & {values: Float32Array}} MapValues
 * @param {string} name
 * @param {string} kind
 * @param {string} queries
 * @param {string} keys
 * @param {LayerWeights[]} layers
 * @param {number} numKeys
 * @returns {MapValues[]}
 */
function buildMaps(name, kind, queries, keys, layers, numKeys) {
  return layers.map((rows, n) => {
    const heads = countHeads(rows, kind, numKeys);
    const shape = [heads, rows.length, numKeys];
    const inputs = kind === "cross" ? { query_inputs: "decoder_input" } : {};
    const values = stackRows(rows, heads, numKeys);
    return { name: `${name}.${n}`, kind, queries, keys, ...inputs, heads: [...Array(heads).keys()], shape, values };
  });
}

/** @param {LayerWeights} rows @param {string} kind @param {number} numKeys */
function countHeads(rows, kind, numKeys) {
  return rows[0].length / (kind === "causal" ? 1 : numKeys); // the first step of a decoder sees one key
}

/** Return the weights (head, query, key) of rows, which may see the first keys only. @param {LayerWeights} rows @param {number} heads @param {number} numKeys */
function stackRows(rows, heads, numKeys) {
  const values = new Float32Array(heads * rows.length * numKeys);
  rows.forEach((row, query) => {
    const seen = row.length / heads;
    for (let head = 0; head < heads; head++) {
      values.set(row.subarray(head * seen, (head + 1) * seen), (head * rows.length + query) * numKeys);
    }
  });
  return values;
}

/** Return the maps that fit, those of cross-attention first, in their order. @param {MapValues[]} maps */
function fittingMaps(maps) {
  let rest = MAX_WEIGHTS;
  const isFitting = (/** @type {MapValues} */ { values }) => (rest -= values.length) >= 0;
  const fitting = new Set([...maps].reverse().filter(isFitting));
  return maps.filter((map) => fitting.has(map));
}

/**
 * Encode weights as unsigned integers times a scale, in base64.
 * @param {Float32Array} values
 * @param {number[]} shape
 * @param {8|16} bits
 * @returns {QuantizedRecord}
 */
function quantize(values, shape, bits) {
  const scale = values.reduce((largest, value) => Math.max(largest, value), 0) / (2 ** bits - 1) || 1;
  const integers = bits === 8 ? new Uint8Array(values.length) : new Uint16Array(values.length);
  values.forEach((value, n) => (integers[n] = Math.round(value / scale)));
  const bytes = new Uint8Array(integers.buffer);
  let text = "";
  for (let n = 0; n < bytes.length; n += CHUNK) text += String.fromCharCode(...bytes.subarray(n, n + CHUNK));
  return { shape, bits, scale, data: btoa(text) };
}
