/** Parser for traces, the JSON that regard.trace describes. Quantized arrays are decoded on first use. */

/**
 * @typedef {{shape: number[], scale: number, values: Uint8Array|Uint16Array|Uint32Array}} QuantizedArray
 * An array in row-major order; an element is its integer value times the scale.
 * @typedef {{pieces: string[], words: (number|null)[]|null, special: number[], padding: number[]}} TokenList
 * @typedef {{top_keys: QuantizedArray, top_weights: QuantizedArray, remainder: QuantizedArray,
 *   tiles: QuantizedArray}} AttentionSummary
 * @typedef {{name: string, kind: string, queries: string, keys: string, query_inputs: string|null, call: number,
 *   call_site: string, heads: number[], shape: number[]} & ({weights: QuantizedArray, summary: null}
 *   |{weights: null, summary: AttentionSummary})} AttentionMap
 * `query_inputs` names the tokens that a decoder reads, where `queries` are those that it writes.
 * @typedef {{kind: string, layer: number, head: number, criterion: string, value: number, candidates: number}} SelectedHead
 * The head of a map group to look at first, the criterion by which it was selected, and among how many.
 * @typedef {{title: string, model: string, tokens: Object<string, TokenList>,
 *   gold: number[][]|null, images: Object<string, PatchImage>, maps: AttentionMap[], selectedHeads: SelectedHead[]}} Trace
 * @typedef {{width: number, height: number, grid: number[], first: number, pixels: Uint8ClampedArray<ArrayBuffer>,
 *   grey: Uint8ClampedArray<ArrayBuffer>}} PatchImage
 * An image whose patches, rows and columns of `grid`, are the tokens from position `first` on; RGBA, in colour and in grey.
 */

/**
 * The same in JSON.
 * @typedef {{height: number, width: number, data: string, grid: number[], first?: number}} ImageRecord
 * @typedef {{shape: number[], bits: number, scale: number, data: string}} QuantizedRecord
 * @typedef {{pieces: string[], words?: (number|null)[]|null, special?: number[], padding?: number[],
 *   log_probs?: (number|null)[]|null}} TokenListRecord
 * @typedef {{name: string, kind: string, queries: string, keys: string, query_inputs?: string|null, call?: number,
 *   call_site?: string, heads: number[], shape: number[], weights?: QuantizedRecord|null, summary?: Object<string, QuantizedRecord>|null}} AttentionMapRecord
 * @typedef {{format: string, version: number, title?: string, model?: string, tokens: Object<string, TokenListRecord>,
 *   gold?: number[][]|null, images?: Object<string, ImageRecord>|null, maps: AttentionMapRecord[], selected_heads?: SelectedHead[]}} TraceRecord
 * `selected_heads` are added for a page; they are not part of a trace file.
 */

export const FORMAT_VERSION = 4;
const MAX_IMAGE_SIDE = 512; // as in regard.trace.image

/** Parse a trace, or throw an error that says why it cannot be read. @param {TraceRecord} record @returns {Trace} */
export function parseTrace(record) {
  if (record?.format !== "regard trace") throw new Error("this is JSON, but not a trace");
  if (record.version !== FORMAT_VERSION) {
    throw new Error(`the trace has format version ${record.version}, but this page reads version ${FORMAT_VERSION}; record it again`);
  }
  const tokens = Object.fromEntries(Object.entries(record.tokens).map(([name, list]) => [name, parseTokens(list)]));
  return {
    title: record.title ?? "",
    model: record.model ?? "",
    tokens,
    gold: record.gold ?? null,
    images: Object.fromEntries(Object.entries(record.images ?? {}).map(([name, image]) => [name, parseImage(image, tokens[name])])),
    maps: record.maps.map((map) => checkInputs(parseMap(map), tokens)),
    selectedHeads: record.selected_heads ?? [],
  };
}

/** Throw unless a map's `query_inputs` are as many tokens as it has queries. @param {AttentionMap} map @param {Trace["tokens"]} tokens */
function checkInputs(map, tokens) {
  const { query_inputs: name, shape } = map;
  if (name !== null && !(Object.hasOwn(tokens, name) && tokens[name].pieces.length === shape[1])) {
    throw new Error(`query_inputs of a map must name a list of ${shape[1]} tokens`);
  }
  return map;
}

/**
 * Decode an image, or throw an error if it claims what it cannot hold.
 * @param {ImageRecord} record
 * @param {TokenList|undefined} tokens
 * @returns {PatchImage}
 */
function parseImage({ height, width, data, grid, first = 0 }, tokens) {
  const isSide = (/** @type {number} */ n) => Number.isInteger(n) && n >= 1 && n <= MAX_IMAGE_SIDE;
  const [rows, columns] = Array.isArray(grid) ? grid : [];
  if (![height, width, rows, columns].every(isSide)) throw new Error(`sides and grid of an image must be from 1 to ${MAX_IMAGE_SIDE}`);
  if (!Number.isInteger(first) || first < 0 || first + rows * columns > (tokens?.pieces.length ?? 0)) {
    throw new Error("an image must have no more patches than its token list has tokens");
  }
  const { values } = dequantize({ shape: [height, width, 3], bits: 8, scale: 1, data });
  const pixels = new Uint8ClampedArray(4 * height * width).fill(255);
  const grey = new Uint8ClampedArray(4 * height * width).fill(255);
  for (let n = 0; n < height * width; n++) {
    const rgb = [values[3 * n], values[3 * n + 1], values[3 * n + 2]];
    pixels.set(rgb, 4 * n);
    const luminance = Math.round(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]);
    grey.fill(luminance, 4 * n, 4 * n + 3);
  }
  return { width, height, grid: [rows, columns], first, pixels, grey };
}

/** @param {TokenListRecord} record @returns {TokenList} */
export function parseTokens({ pieces, words, special, padding }) {
  return { pieces, words: words ?? null, special: special ?? [], padding: padding ?? [] };
}

/** @param {AttentionMapRecord} record @returns {AttentionMap} */
function parseMap(record) {
  const { name, kind, queries, keys, query_inputs = null, heads, shape, call = 0, call_site = "" } = record;
  const weights = record.weights ? dequantizeLazily(record.weights) : null;
  const summary = record.summary ? parseSummary(record.summary) : null;
  return /** @type {AttentionMap} */ ({ name, kind, queries, keys, query_inputs, heads, shape, call, call_site, weights, summary });
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
