/** Token groups: the rows and columns of a view. A group is a token, a merged word, or all special tokens collapsed. */
import { displayTokens, escapeControls } from "./detokenize.js";

const WORDPIECE_PREFIX = "##"; // on every piece that continues a word

/** Label of the group that holds all special tokens and padding. */
export const COLLAPSED_LABEL = "⋯";

/**
 * @import { TokenList } from "./trace.js"
 * @typedef {{text: string, positions: number[], isSpecial: boolean, word: number|null}} TokenGroup
 * @typedef {{mergeSubwords?: boolean, collapseSpecial?: boolean}} GroupOptions
 */

const cache = /** @type {WeakMap<TokenList, Object<string, TokenGroup[]>>} */ (new WeakMap());

/**
 * Group the tokens of one axis, in order. Equal arguments return the same array.
 * @param {TokenList} tokens
 * @param {GroupOptions} [options]
 * @returns {TokenGroup[]}
 */
export function groupTokens(tokens, { mergeSubwords = false, collapseSpecial = false } = {}) {
  const variants = cache.get(tokens) ?? {};
  cache.set(tokens, variants);
  return (variants[`${mergeSubwords} ${collapseSpecial}`] ??= buildGroups(tokens, mergeSubwords, collapseSpecial));
}

/** @param {TokenList} tokens @param {boolean} mergeSubwords @param {boolean} collapseSpecial @returns {TokenGroup[]} */
function buildGroups(tokens, mergeSubwords, collapseSpecial) {
  const special = new Set([...tokens.special, ...tokens.padding]);
  const spans = /** @type {{positions: number[], word: number|null}[]} */ ([]);
  let previousWord = /** @type {number|null} */ (null);
  for (let position = 0; position < tokens.pieces.length; position++) {
    if (collapseSpecial && special.has(position)) continue;
    const word = tokens.words ? tokens.words[position] : position;
    if (mergeSubwords && word !== null && word === previousWord) spans[spans.length - 1].positions.push(position);
    else spans.push({ positions: [position], word });
    previousWord = word;
  }
  const joined = joinPieces(spans.map(({ positions }) => positions.map((position) => tokens.pieces[position])));
  const groups = spans.map(({ positions, word }, n) => ({
    positions,
    word,
    isSpecial: positions.every((position) => special.has(position)),
    text: joined[n],
  }));
  const specialIndices = groups.flatMap((group, n) => (group.isSpecial ? [n] : []));
  const texts = displayTokens(joined, specialIndices);
  groups.forEach((group, n) => (group.text = escapeControls(texts[n])));
  if (collapseSpecial && special.size) {
    const positions = [...special].sort((a, b) => a - b);
    groups.push({ positions, word: null, isSpecial: true, text: COLLAPSED_LABEL });
  }
  return groups;
}

/**
 * Join the pieces of each word; WordPiece prefixes are removed if every continuation has one.
 * @param {string[][]} words
 */
function joinPieces(words) {
  const isWordPiece = words.every(([, ...others]) => others.every((piece) => piece.startsWith(WORDPIECE_PREFIX)));
  const start = isWordPiece ? WORDPIECE_PREFIX.length : 0;
  return words.map(([first, ...others]) => first + others.map((piece) => piece.slice(start)).join(""));
}

/** Return whether group n is exactly token n, for all n. @param {TokenGroup[]} groups */
export function isUngrouped(groups) {
  return groups.every((group, n) => group.positions.length === 1 && group.positions[0] === n);
}
