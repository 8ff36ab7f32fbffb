/** A translation as runs of text, each with how sure the model was of it. */

/**
 * Find words in their text, in order; what is between them has no probability.
 * @param {string} text
 * @param {{text: string, probability: number}[]} words
 * @returns {{text: string, probability: number|null}[]}
 */
export function segments(text, words) {
  const found = [];
  let from = 0;
  for (const { text: word, probability } of words) {
    const trimmed = word.trim();
    const place = trimmed ? text.indexOf(trimmed, from) : -1;
    if (place < 0) continue;
    if (place > from) found.push({ text: text.slice(from, place), probability: null });
    found.push({ text: trimmed, probability });
    from = place + trimmed.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), probability: null });
  return found;
}

const SURE = 0.8; // models that learned from smoothed labels are seldom surer than 0.9

/** How strongly a word is marked, from 0 for a sure one to 1. @param {number} probability */
export function doubt(probability) {
  return Math.min(Math.max((SURE - probability) / SURE, 0), 1) ** 0.7;
}
