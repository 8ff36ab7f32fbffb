/** Translation cards: the text with uncertain words highlighted, its probability and its score. */
import { createElement } from "../viz/dom.js";
import { groupTokens } from "../viz/tokenGroups.js";
import { parseTokens } from "../viz/trace.js";
import { splitIntoWords, uncertainty } from "./confidence.js";
import { formatNumber, formatPercent } from "./format.js";

/**
 * @import { TokenListRecord, TraceRecord } from "../viz/trace.js"
 * @import { Texts } from "./i18n.js"
 * @typedef {{text: string, probability: number}} Word
 * @typedef {{text: string, score: number, log_prob: number, words: Word[]}} Translation
 */

/**
 * Create the card of a translation, a button that selects it.
 * @param {Translation} translation
 * @param {{isSelected: boolean, isBest: boolean, texts: Texts, onSelect: () => void}} options
 */
export function createTranslationCard(translation, { isSelected, isBest, texts, onSelect }) {
  const probability = formatPercent(Math.exp(translation.log_prob));
  const score = createElement("span", { title: texts.scoreHelp }, `${probability} · ${texts.score} ${formatNumber(translation.score, 3)}`);
  const badge = isBest ? [createElement("span", { className: "best-badge" }, texts.best)] : [];
  const words = createWords(translation.text, translation.words, texts);
  const text = createElement("span", { className: "card-text", dir: "auto" }, ...(words.length ? words : [texts.emptyText]));
  const card = createElement("button", { type: "button", className: "card", onclick: onSelect }, text,
    createElement("span", { className: "card-footer" }, ...badge, score));
  card.setAttribute("aria-pressed", String(isSelected));
  return card;
}

/** @param {string} text @param {Word[]} words @param {Texts} texts */
function createWords(text, words, texts) {
  return splitIntoWords(text, words).map(({ text: part, probability }) => {
    if (probability === null) return document.createTextNode(part);
    const word = createElement("span", { className: "word", title: texts.wordProbability(part, formatPercent(probability)) }, part);
    word.style.setProperty("--uncertainty", uncertainty(probability).toFixed(3));
    return word;
  });
}

/**
 * Create the text of a forced target, with the probability that the model gives to each word.
 * @param {TraceRecord} record
 * @param {string} text
 * @param {Texts} texts
 */
export function createForcedTarget(record, text, texts) {
  const words = wordProbabilities(record.tokens.target);
  if (!words.length) return createElement("span");
  const total = words.reduce((product, word) => product * word.probability, 1);
  return createElement("p", {},
    createElement("span", { dir: "auto", className: "card-text" }, ...createWords(text, words, texts)),
    createElement("span", { className: "card-footer" }, formatPercent(total)));
}

/**
 * Return the words of a token list with the probability of all their tokens.
 * @param {TokenListRecord} record
 * @returns {Word[]}
 */
function wordProbabilities(record) {
  const { log_probs: logProbs } = record;
  if (!logProbs) return [];
  return groupTokens(parseTokens(record), { mergeSubwords: true })
    .filter((group) => !group.isSpecial)
    .map((group) => {
      const logProb = group.positions.reduce((sum, position) => sum + (logProbs[position] ?? 0), 0);
      return { text: group.text, probability: Math.exp(logProb) };
    });
}
