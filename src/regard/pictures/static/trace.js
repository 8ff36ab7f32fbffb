/** The trace, read from the JSON that regard.trace describes; numbers are unpacked when first used. */

/**
 * @typedef {{shape: number[], scale: number, values: Uint8Array|Uint16Array|Uint32Array}} Numbers
 * A number is its value times the scale; the last axis runs fastest.
 * @typedef {{pieces: string[], words: (number|null)[]|null, special: number[], padding: number[]}} Tokens
 * @typedef {{name: string, kind: string, queries: string, keys: string, call: number, place: string,
 *   heads: number[], sizes: number[], weights: Numbers|null, reduced: Object<string, Numbers>|null}} Look
 * @typedef {{title: string, model: string, tokens: Object<string, Tokens>,
 *   gold: number[][]|null, looks: Look[]}} Trace
 */

/** Read a trace, or say in one sentence why it cannot be read. @returns {Trace} */
export function readTrace(record) {
  if (record?.format !== "regard trace") throw new Error("this is JSON, but not a trace");
  if (record.version !== 1) {
    throw new Error(`the trace has version ${record.version}, but this page reads version 1`);
  }
  const tokens = Object.fromEntries(
    Object.entries(record.tokens).map(([name, one]) => [name, readTokens(one)]),
  );
  return {
    title: record.title ?? "",
    model: record.model ?? "",
    tokens,
    gold: record.gold ?? null,
    looks: record.looks.map(readLook),
  };
}

function readTokens({ pieces, words, special, padding }) {
  return { pieces, words: words ?? null, special: special ?? [], padding: padding ?? [] };
}

function readLook(record) {
  const { name, kind, queries, keys, call, place, heads, sizes } = record;
  return {
    name,
    kind,
    queries,
    keys,
    call: call ?? 0,
    place: place ?? "",
    heads,
    sizes,
    weights: once(record.weights),
    reduced: record.reduced ? lazily(record.reduced) : null,
  };
}

function lazily(record) {
  const reduced = {};
  for (const [name, packed] of Object.entries(record)) {
    let numbers = null;
    Object.defineProperty(reduced, name, { get: () => (numbers ??= unpack(packed)) });
  }
  return reduced;
}

/** Stand for packed numbers without unpacking them yet. */
function once(packed) {
  if (!packed) return null;
  let numbers = null;
  const all = () => (numbers ??= unpack(packed));
  return {
    shape: packed.shape,
    scale: packed.scale,
    get values() {
      return all().values;
    },
  };
}

/** Read unsigned integers from base64. @returns {Numbers} */
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
