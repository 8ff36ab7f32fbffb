/** The current view as a file. */

/** Name a file after what it shows; letters of any script are kept. @param {string[]} parts @param {string} ending */
export function fileName(parts, ending) {
  const name = parts.join("-").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${name.slice(0, 80) || "regard"}.${ending}`;
}

/** Hand a file to the reader. @param {Blob} blob @param {string} name */
export function hand(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Make a canvas of pixels, four bytes each.
 * @param {import("./scale.js").Bytes} bytes
 * @param {number} columns
 * @param {number} rows
 */
export function toCanvas(bytes, columns, rows) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  canvas.getContext("2d")?.putImageData(new ImageData(bytes, columns, rows), 0, 0);
  return canvas;
}
