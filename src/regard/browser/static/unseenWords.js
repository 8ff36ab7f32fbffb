/** Words of a text that the training data lack. The twin of regard.data.checks.unseen_words. */

const WORD = /[\p{L}\p{N}_]+(?:'[\p{L}\p{N}_]+)?/gu;

/**
 * Return the distinct words of a text that are not among the known ones, in order.
 * @param {string} text
 * @param {Set<string>} known in lower case; "s" of "cat's" is one of its own
 */
export function unseenWords(text, known) {
  const words = text.replaceAll("\u2019", "'").match(WORD) ?? [];
  return [...new Set(words)].filter((word) => word.toLowerCase().split("'").some((part) => !known.has(part)));
}
