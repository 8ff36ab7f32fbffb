/** Which pieces are told as one: those of a word, and the special ones when they are folded. */
import { readable, safe } from "./detokenize.js";

/** WordPiece's mark, of all pieces that go on with a word, or of none. */
const GOES_ON = "##";

/** Stands for all special pieces and padding of a side. */
export const FOLDED = "⋯";

/**
 * @import { Tokens } from "./trace.js"
 * @typedef {{text: string, places: number[], special: boolean, word: number|null}} Group
 */

const known = /** @type {WeakMap<Tokens, Object<string, Group[]>>} */ (new WeakMap());

/**
 * List what is shown of a side, in order; asked for again, it is the same list.
 * @param {Tokens} tokens
 * @param {{words?: boolean, folded?: boolean}} [options]
 * @returns {Group[]}
 */
export function groups(tokens, { words = false, folded = false } = {}) {
  const lists = known.get(tokens) ?? {};
  known.set(tokens, lists);
  return (lists[`${words} ${folded}`] ??= listed(tokens, words, folded));
}

/** @param {Tokens} tokens @param {boolean} words @param {boolean} folded @returns {Group[]} */
function listed(tokens, words, folded) {
  const special = new Set([...tokens.special, ...tokens.padding]);
  const found = /** @type {{places: number[], word: number|null}[]} */ ([]);
  let before = /** @type {number|null} */ (null);
  for (let place = 0; place < tokens.pieces.length; place++) {
    if (folded && special.has(place)) continue;
    const word = tokens.words ? tokens.words[place] : place;
    if (words && word !== null && word === before) found[found.length - 1].places.push(place);
    else found.push({ places: [place], word });
    before = word;
  }
  const written = joined(found.map(({ places }) => places.map((place) => tokens.pieces[place])));
  const shown = found.map(({ places, word }, n) => ({
    places,
    word,
    special: places.every((place) => special.has(place)),
    text: written[n],
  }));
  const kept = shown.flatMap((group, n) => (group.special ? [n] : []));
  const texts = readable(shown.map((group) => group.text), kept);
  shown.forEach((group, n) => (group.text = safe(texts[n])));
  if (folded && special.size) {
    const places = [...special].sort((a, b) => a - b);
    shown.push({ places, word: null, special: true, text: FOLDED });
  }
  return shown;
}

/** Join the pieces of each word, without the marks that say where they were parted. @param {string[][]} words */
function joined(words) {
  const marked = words.every(([, ...others]) => others.every((piece) => piece.startsWith(GOES_ON)));
  const start = marked ? GOES_ON.length : 0;
  return words.map(([first, ...others]) => first + others.map((piece) => piece.slice(start)).join(""));
}

/** Every piece is shown by itself, in order. @param {Group[]} shown */
export function isPlain(shown) {
  return shown.every((group, n) => group.places.length === 1 && group.places[0] === n);
}
