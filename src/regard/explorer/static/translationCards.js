/** A translation as a card: its words, how sure the model was of each, and its score. */
import { element } from "../viz/controls.js";
import { groups } from "../viz/tokenGroups.js";
import { percent, plain } from "./format.js";
import { doubt, segments } from "./confidence.js";

/**
 * @import { TokensRecord, TraceRecord } from "../viz/trace.js"
 * @import { Texts } from "./i18n.js"
 * @typedef {{text: string, probability: number}} Word
 * @typedef {{text: string, score: number, log_prob: number, words: Word[]}} Translation
 */

/**
 * @param {Translation} translation
 * @param {{chosen: boolean, first: boolean, texts: Texts, choose: () => void}} how
 */
export function card(translation, { chosen, first, texts, choose }) {
  const probability = Math.exp(translation.log_prob);
  const name = element("span", { className: "card-score" }, `${percent(probability)} · ${texts.score} ${plain(translation.score, 3)}`);
  name.title = texts.scoreHelp;
  const rank = first ? [element("span", { className: "best" }, texts.best)] : [];
  const words = segments(translation.text, translation.words).map((part) => word(part, texts));
  const text = element("span", { className: "card-text", dir: "auto" }, ...(words.length ? words : [texts.saysNothing]));
  const button = element("button", { type: "button", className: "card", onclick: choose }, text,
    element("span", { className: "card-foot" }, ...rank, name));
  button.setAttribute("aria-pressed", String(chosen));
  return button;
}

/** @param {{text: string, probability: number|null}} part @param {Texts} texts */
function word({ text, probability }, texts) {
  if (probability === null) return document.createTextNode(text);
  const made = element("span", { className: "word" }, text);
  made.title = texts.wordSure(text, percent(probability));
  made.style.setProperty("--doubt", doubt(probability).toFixed(3));
  return made;
}

/**
 * The reader's own target, marked by what the model thought of each word.
 * @param {TraceRecord} record
 * @param {string} text
 * @param {Texts} texts
 */
export function ownCard(record, text, texts) {
  const told = sureness(record.tokens.target);
  if (!told.length) return element("span");
  const total = told.reduce((product, part) => product * part.probability, 1);
  const words = segments(text, told).map((part) => word(part, texts));
  return element("p", {}, element("span", { dir: "auto", className: "card-text" }, ...words),
    element("span", { className: "card-foot" }, element("span", { className: "card-score" }, percent(total))));
}

/** Each word of a side with the probability of all its pieces. @param {TokensRecord} side @returns {Word[]} */
function sureness({ pieces, words, special, padding, log_probs: likely }) {
  if (!likely) return [];
  const tokens = { pieces, words: words ?? null, special: special ?? [], padding: padding ?? [] };
  return groups(tokens, { words: true })
    .filter((group) => !group.special)
    .map((group) => {
      const sum = group.places.reduce((total, place) => total + (likely[place] ?? 0), 0);
      return { text: group.text, probability: Math.exp(sum) };
    });
}
