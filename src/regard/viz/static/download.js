/** Saving files from the page. */

/**
 * Build a file name from its parts, keeping letters and digits of any script.
 * @param {string[]} parts
 * @param {string} extension
 */
export function toFileName(parts, extension) {
  const name = parts.join("-").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${name.slice(0, 80) || "regard"}.${extension}`;
}

/** Offer a blob as a download. @param {Blob} blob @param {string} fileName */
export function downloadBlob(blob, fileName) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
