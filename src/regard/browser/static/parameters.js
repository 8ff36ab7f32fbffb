/** Parameters: tensors from base64, as float32. The twin of regard.browser.parameters. */

/**
 * @typedef {{shape: number[], dtype: "float32"|"float16"|"int8", offset: number}} TensorRecord
 * @typedef {{shape: number[], values: Float32Array}} Tensor in row-major order
 */

/** Decode base64. @param {string} text @returns {ArrayBuffer} */
export function decodeBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n);
  return bytes.buffer;
}

/**
 * Decode tensors; every browser runs on little-endian processors, for which the bytes are written.
 * @param {TensorRecord[]} records
 * @param {ArrayBuffer} buffer
 * @returns {Tensor[]}
 */
export function decodeTensors(records, buffer) {
  return records.map(({ shape, dtype, offset }) => {
    const count = shape.reduce((product, size) => product * size, 1);
    if (dtype === "int8") return { shape, values: decodeInt8(buffer, offset, count, shape[shape.length - 1]) };
    if (dtype === "float16") return { shape, values: decodeFloat16(new Uint16Array(buffer, offset, count)) };
    return { shape, values: new Float32Array(buffer, offset, count) };
  });
}

/**
 * Multiply the integers of each row by its scale; the scales come first.
 * @param {ArrayBuffer} buffer
 * @param {number} offset
 * @param {number} count
 * @param {number} width
 */
function decodeInt8(buffer, offset, count, width) {
  const rows = width ? count / width : 0;
  const scales = new Float32Array(buffer, offset, rows);
  const integers = new Int8Array(buffer, offset + scales.byteLength, count);
  const values = new Float32Array(count);
  for (let row = 0; row < rows; row++) {
    for (let n = row * width; n < (row + 1) * width; n++) values[n] = integers[n] * scales[row];
  }
  return values;
}

/** Decode finite IEEE 754 half-precision numbers. @param {Uint16Array} halves */
function decodeFloat16(halves) {
  const values = new Float32Array(halves.length);
  const words = new Uint32Array(values.buffer);
  for (let n = 0; n < values.length; n++) {
    // sign, exponent and fraction at float32's places; the factor corrects the exponent's bias, also of subnormals
    words[n] = ((halves[n] & 0x8000) << 16) | ((halves[n] & 0x7fff) << 13);
    values[n] *= 2 ** 112;
  }
  return values;
}
