/** Which pieces are told as one: those of a word, and the special ones when they are folded. */
import { readable, safe } from "./pieces.js";

/** Stands for all special pieces and padding of a side. */
export const FOLDED = "⋯";

/**
 * @typedef {{text: string, places: number[], special: boolean, word: number|null}} Group
 */

const known = new WeakMap();

/** List what is shown of a side, in order; asked for again, it is the same list. @returns {Group[]} */
export function groups(tokens, { words = false, folded = false } = {}) {
  if (!known.has(tokens)) known.set(tokens, {});
  const lists = known.get(tokens);
  return (lists[`${words} ${folded}`] ??= listed(tokens, words, folded));
}

function listed(tokens, words, folded) {
  const special = new Set([...tokens.special, ...tokens.padding]);
  const found = [];
  let before = null;
  for (let place = 0; place < tokens.pieces.length; place++) {
    if (folded && special.has(place)) continue;
    const word = tokens.words ? tokens.words[place] : place;
    if (words && word !== null && word === before) found.at(-1).places.push(place);
    else found.push({ places: [place], word });
    before = word;
  }
  const shown = found.map(({ places, word }) => ({
    places,
    word,
    special: places.every((place) => special.has(place)),
    text: places.map((place) => tokens.pieces[place]).join(""),
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

/** Every piece is shown by itself, in order. */
export function isPlain(shown) {
  return shown.every((group, n) => group.places.length === 1 && group.places[0] === n);
}
