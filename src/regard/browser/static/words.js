/** Words of a text, and which tokens belong to them. The twin of regard.data.spans and regard.runs.tracing. */
import { splitWords, stripStart } from "./tokenizer.js";

/** @import { Span } from "./tokenizer.js" */

const APOSTROPHES = ["'", "\u2019"];
const ENDINGS = new Set(["t", "s", "m", "d", "re", "ve", "ll", "hui"]); // what follows an apostrophe and is no word

/**
 * Return the spans of the words and punctuation marks of a text, without spaces. An apostrophe within a word is part of it.
 * @param {string} text
 * @returns {Span[]}
 */
export function findWords(text) {
  const spans = /** @type {Span[]} */ ([]);
  let end = 0;
  for (const word of splitWords(text)) {
    end += word.length;
    const length = stripStart(word).length;
    if (length) spans.push([end - length, end]);
  }
  return joinApostrophes(text, spans);
}

/**
 * Join apostrophes within words to the part before them ("l'" and "homme"), and endings to the apostrophe ("don't").
 * @param {string} text
 * @param {Span[]} words
 */
function joinApostrophes(text, words) {
  const joined = /** @type {Span[]} */ ([]);
  let isContinued = false; // the next span belongs to the last one
  words.forEach(([start, end], n) => {
    if (isContinued) {
      joined[joined.length - 1][1] = end;
      isContinued = false;
    } else if (n > 0 && isWithinWord(text, start, end)) {
      joined[joined.length - 1][1] = end;
      isContinued = n + 1 < words.length && ENDINGS.has(text.slice(...words[n + 1]).toLowerCase());
    } else {
      joined.push([start, end]);
    }
  });
  return joined;
}

/** Return whether a span is an apostrophe with a letter on both sides. @param {string} text @param {number} start @param {number} end */
function isWithinWord(text, start, end) {
  return APOSTROPHES.includes(text.slice(start, end)) && /\p{L}$/u.test(text.slice(0, start)) && /^\p{L}/u.test(text.slice(end));
}

/**
 * Return for each token the index of the first word that it overlaps, null after the last word. A token that overlaps
 * none, such as a space, belongs to the word of the next token.
 * @param {Span[]} tokens
 * @param {Span[]} words
 * @returns {(number|null)[]}
 */
export function assignWords(tokens, words) {
  const assigned = tokens.map(([start, end]) => {
    const index = words.findIndex((word) => start < word[1] && end > word[0]);
    return index < 0 ? null : index;
  });
  for (let n = assigned.length - 2; n >= 0; n--) assigned[n] ??= assigned[n + 1];
  return assigned;
}
