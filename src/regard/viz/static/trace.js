/** The trace, read from the JSON that regard.trace describes; numbers are unpacked when first used. */

/**
 * @typedef {{shape: number[], scale: number, values: Uint8Array|Uint16Array|Uint32Array}} Numbers
 * A number is its value times the scale; the last axis runs fastest.
 * @typedef {{pieces: string[], words: (number|null)[]|null, special: number[], padding: number[]}} Tokens
 * @typedef {{top_keys: Numbers, top_weights: Numbers, remainder: Numbers, tiles: Numbers}} Reduced
 * @typedef {{name: string, kind: string, queries: string, keys: string, call: number, place: string,
 *   heads: number[], sizes: number[]} & ({weights: Numbers, reduced: null}|{weights: null, reduced: Reduced})} Look
 * @typedef {{title: string, model: string, tokens: Object<string, Tokens>,
 *   gold: number[][]|null, looks: Look[]}} Trace
 */

/**
 * The same as the JSON has it.
 * @typedef {{shape: number[], bits: number, scale: number, data: string}} Packed
 * @typedef {{pieces: string[], words?: (number|null)[]|null, special?: number[], padding?: number[],
 *   log_probs?: (number|null)[]|null}} TokensRecord
 * @typedef {{name: string, kind: string, queries: string, keys: string, call?: number, call_site?: string, heads: number[],
 *   shape: number[], weights?: Packed|null, summary?: Object<string, Packed>|null}} LookRecord
 * @typedef {{format: string, version: number, title?: string, model?: string, tokens: Object<string, TokensRecord>,
 *   gold?: number[][]|null, maps: LookRecord[]}} TraceRecord
 */

/** Read a trace, or say in one sentence why it cannot be read. @param {TraceRecord} record @returns {Trace} */
export function readTrace(record) {
  if (record?.format !== "regard trace") throw new Error("this is JSON, but not a trace");
  if (record.version !== 2) {
    throw new Error(`the trace has format version ${record.version}, but this page reads version 2`);
  }
  const tokens = Object.fromEntries(
    Object.entries(record.tokens).map(([name, one]) => [name, readTokens(one)]),
  );
  return {
    title: record.title ?? "",
    model: record.model ?? "",
    tokens,
    gold: record.gold ?? null,
    looks: record.maps.map(readLook),
  };
}

/** @param {TokensRecord} record @returns {Tokens} */
function readTokens({ pieces, words, special, padding }) {
  return { pieces, words: words ?? null, special: special ?? [], padding: padding ?? [] };
}

/** @param {LookRecord} record @returns {Look} */
function readLook(record) {
  const { name, kind, queries, keys, call, call_site: place, heads, shape: sizes } = record;
  const facts = { name, kind, queries, keys, call: call ?? 0, place: place ?? "", heads, sizes };
  const reduced = record.summary ? lazily(record.summary) : null;
  return /** @type {Look} */ ({ ...facts, weights: once(record.weights), reduced });
}

/** @param {Object<string, Packed>} record @returns {Reduced} */
function lazily(record) {
  const reduced = /** @type {Reduced} */ ({});
  for (const [name, packed] of Object.entries(record)) {
    let numbers = /** @type {Numbers|null} */ (null);
    Object.defineProperty(reduced, name, { get: () => (numbers ??= unpack(packed)) });
  }
  return reduced;
}

/** Stand for packed numbers without unpacking them yet. @param {Packed|null|undefined} packed @returns {Numbers|null} */
function once(packed) {
  if (!packed) return null;
  let numbers = /** @type {Numbers|null} */ (null);
  const all = () => (numbers ??= unpack(packed));
  return {
    shape: packed.shape,
    scale: packed.scale,
    get values() {
      return all().values;
    },
  };
}

/** Read unsigned integers from base64. @param {Packed} packed @returns {Numbers} */
export function unpack({ shape, bits, scale, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
  const count = shape.reduce((product, size) => product * size, 1);
  if (bytes.length * 8 !== count * bits) {
    throw new Error(`numbers of shape ${shape} must hold ${(count * bits) / 8} bytes, not ${bytes.length}`);
  }
  if (bits === 8) return { shape, scale, values: bytes };
  const view = new DataView(bytes.buffer);
  const values = bits === 16 ? new Uint16Array(count) : new Uint32Array(count);
  for (let n = 0; n < count; n++) {
    values[n] = bits === 16 ? view.getUint16(2 * n, true) : view.getUint32(4 * n, true);
  }
  return { shape, scale, values };
}
