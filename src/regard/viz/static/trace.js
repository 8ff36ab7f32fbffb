/** Parser for traces, the JSON that regard.trace describes. Quantized arrays are decoded on first use. */

/**
 * @typedef {{shape: number[], scale: number, values: Uint8Array|Uint16Array|Uint32Array}} QuantizedArray
 * An array in row-major order; an element is its integer value times the scale.
 * @typedef {{pieces: string[], words: (number|null)[]|null, special: number[], padding: number[]}} TokenList
 * @typedef {{top_keys: QuantizedArray, top_weights: QuantizedArray, remainder: QuantizedArray,
 *   tiles: QuantizedArray}} AttentionSummary
 * @typedef {{name: string, kind: string, queries: string, keys: string, call: number, call_site: string,
 *   heads: number[], shape: number[]} & ({weights: QuantizedArray, summary: null}
 *   |{weights: null, summary: AttentionSummary})} AttentionMap
 * @typedef {{title: string, model: string, tokens: Object<string, TokenList>,
 *   gold: number[][]|null, maps: AttentionMap[]}} Trace
 */

/**
 * The same in JSON.
 * @typedef {{shape: number[], bits: number, scale: number, data: string}} QuantizedRecord
 * @typedef {{pieces: string[], words?: (number|null)[]|null, special?: number[], padding?: number[],
 *   log_probs?: (number|null)[]|null}} TokenListRecord
 * @typedef {{name: string, kind: string, queries: string, keys: string, call?: number, call_site?: string, heads: number[],
 *   shape: number[], weights?: QuantizedRecord|null, summary?: Object<string, QuantizedRecord>|null}} AttentionMapRecord
 * @typedef {{format: string, version: number, title?: string, model?: string, tokens: Object<string, TokenListRecord>,
 *   gold?: number[][]|null, maps: AttentionMapRecord[]}} TraceRecord
 */

const FORMAT_VERSION = 2;

/** Parse a trace, or throw an error that says why it cannot be read. @param {TraceRecord} record @returns {Trace} */
export function parseTrace(record) {
  if (record?.format !== "regard trace") throw new Error("this is JSON, but not a trace");
  if (record.version !== FORMAT_VERSION) {
    throw new Error(`the trace has format version ${record.version}, but this page reads version ${FORMAT_VERSION}`);
  }
  const tokens = Object.fromEntries(Object.entries(record.tokens).map(([name, list]) => [name, parseTokens(list)]));
  return {
    title: record.title ?? "",
    model: record.model ?? "",
    tokens,
    gold: record.gold ?? null,
    maps: record.maps.map(parseMap),
  };
}

/** @param {TokenListRecord} record @returns {TokenList} */
export function parseTokens({ pieces, words, special, padding }) {
  return { pieces, words: words ?? null, special: special ?? [], padding: padding ?? [] };
}

/** @param {AttentionMapRecord} record @returns {AttentionMap} */
function parseMap(record) {
  const { name, kind, queries, keys, heads, shape, call = 0, call_site = "" } = record;
  const weights = record.weights ? dequantizeLazily(record.weights) : null;
  const summary = record.summary ? parseSummary(record.summary) : null;
  return /** @type {AttentionMap} */ ({ name, kind, queries, keys, heads, shape, call, call_site, weights, summary });
}

/** @param {Object<string, QuantizedRecord>} record @returns {AttentionSummary} */
function parseSummary({ top_keys, top_weights, remainder, tiles }) {
  return {
    top_keys: dequantizeLazily(top_keys),
    top_weights: dequantizeLazily(top_weights),
    remainder: dequantizeLazily(remainder),
    tiles: dequantizeLazily(tiles),
  };
}

/** @param {QuantizedRecord} record @returns {QuantizedArray} */
function dequantizeLazily(record) {
  let array = /** @type {QuantizedArray|null} */ (null);
  return {
    shape: record.shape,
    scale: record.scale,
    get values() {
      return (array ??= dequantize(record)).values;
    },
  };
}

/**
 * Decode the unsigned little-endian integers of an array from base64.
 * @param {QuantizedRecord} record
 * @returns {QuantizedArray}
 */
export function dequantize({ shape, bits, scale, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
  const count = shape.reduce((product, size) => product * size, 1);
  if (bytes.length * 8 !== count * bits) {
    throw new Error(`an array of shape ${shape} must hold ${(count * bits) / 8} bytes, but it holds ${bytes.length}`);
  }
  if (bits === 8) return { shape, scale, values: bytes };
  const view = new DataView(bytes.buffer);
  const values = bits === 16 ? new Uint16Array(count) : new Uint32Array(count);
  for (let n = 0; n < count; n++) {
    values[n] = bits === 16 ? view.getUint16(2 * n, true) : view.getUint32(4 * n, true);
  }
  return { shape, scale, values };
}
