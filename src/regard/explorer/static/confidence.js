/** Confidence of a translation: its words with their probabilities, and how strongly to highlight them. */

/**
 * Split a text into its words, in order, and what is between them, which has no probability.
 * @param {string} text
 * @param {{text: string, probability: number}[]} words
 * @returns {{text: string, probability: number|null}[]}
 */
export function splitIntoWords(text, words) {
  const parts = [];
  let end = 0;
  for (const { text: word, probability } of words) {
    const trimmed = word.trim();
    const start = trimmed ? text.indexOf(trimmed, end) : -1;
    if (start < 0) continue;
    if (start > end) parts.push({ text: text.slice(end, start), probability: null });
    parts.push({ text: trimmed, probability });
    end = start + trimmed.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), probability: null });
  return parts;
}

const CONFIDENT = 0.8; // with label smoothing, probabilities seldom exceed 0.9

/** Return how uncertain a word is, from 0 (not highlighted) to 1. @param {number} probability */
export function uncertainty(probability) {
  return Math.min(Math.max((CONFIDENT - probability) / CONFIDENT, 0), 1) ** 0.7;
}
