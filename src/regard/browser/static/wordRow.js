/** A text whose words can be pointed at, tapped, and reached with the arrow keys. */
import { createElement } from "../../viz/static/dom.js";

/**
 * @import { TextWords } from "./translator.js"
 * @typedef {{element: HTMLElement, show: (text: TextWords) => void, highlight: (weights: number[]) => void,
 *   select: (index: number|null, isPinned: boolean) => void}} WordRow
 */

/** @type {Object<string, (index: number, count: number) => number>} */
const MOVES = {
  ArrowLeft: (index) => Math.max(index - 1, 0),
  ArrowRight: (index, count) => Math.min(index + 1, count - 1),
  Home: () => 0,
  End: (_, count) => count - 1,
};

/**
 * Create a row of words. `onPoint` is called with the word that is pointed at or focused, null if none is, and `onPin`
 * with one that is tapped, clicked or chosen with Enter.
 * @param {string} className
 * @param {{onPoint: (index: number|null) => void, onPin: (index: number) => void}} listeners
 * @returns {WordRow}
 */
export function createWordRow(className, { onPoint, onPin }) {
  const element = createElement("p", { className, dir: "auto", role: "group" });
  let words = /** @type {HTMLElement[]} */ ([]);

  /** @param {string} text @param {number} index */
  function createWord(text, index) {
    const word = createElement("span", { className: "reading-word", role: "button", tabIndex: index ? -1 : 0 }, text);
    word.onpointerenter = (event) => event.pointerType === "mouse" && onPoint(index);
    word.onpointerleave = (event) => event.pointerType === "mouse" && onPoint(null);
    word.onfocus = () => onPoint(index);
    word.onblur = () => onPoint(null);
    word.onclick = () => onPin(index);
    word.onkeydown = (event) => onKeydown(event, index);
    return word;
  }

  /** @param {KeyboardEvent} event @param {number} index */
  function onKeydown(event, index) {
    const move = MOVES[event.key];
    if (move) {
      const next = words[move(index, words.length)];
      for (const word of words) word.tabIndex = word === next ? 0 : -1;
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      onPin(index);
    } else {
      return;
    }
    event.preventDefault();
  }

  return {
    element,
    show({ text, words: spans }) {
      words = spans.map(([start, end], index) => createWord(text.slice(start, end), index));
      const parts = words.flatMap((word, index) => [text.slice(index ? spans[index - 1][1] : 0, spans[index][0]), word]);
      element.replaceChildren(...parts, text.slice(spans.length ? spans[spans.length - 1][1] : 0));
    },
    /** Colour the words by weights; none without weights. */
    highlight: (weights) => words.forEach((word, index) => {
      word.style.setProperty("--weight", `${(100 * (weights[index] ?? 0)).toFixed(0)}%`);
    }),
    select: (index, isPinned) => words.forEach((word, n) => {
      word.classList.toggle("is-selected", n === index);
      word.setAttribute("aria-pressed", String(n === index && isPinned));
    }),
  };
}
