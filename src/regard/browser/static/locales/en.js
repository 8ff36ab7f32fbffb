/** English texts of the translator page. */

/**
 * @typedef {(one: string) => string} Format1
 * @typedef {(one: string, two: string) => string} Format2
 * @typedef {{translatedIn: Format1, link: Format2, looksAt: Format2, isReadFor: Format2, looksAtNothing: Format1,
 *   list: (items: string[]) => string, unseenWords: (words: string[]) => string, headNote: (layer: number, head: number|null) => string}} Formats
 * @typedef {Formats & typeof EN} Texts
 */

/** @satisfies {Formats & Object<string, unknown>} */
export const EN = {
  otherLanguage: "中文",
  theme: "Theme",
  lead: "This page holds the model and translates by itself: without network, and nothing leaves it.",
  text: "Text",
  placeholder: "Write a sentence",
  examples: "Examples",
  translation: "Translation",
  read: "What the model reads",
  attention: "Attention of every layer and head",
  pointAtWord: "Point at a word, tap it, or reach it with Tab and the arrow keys, to see which words belong to it.",
  translating: "Translating…",
  translatedIn: (milliseconds) => `Translated in ${milliseconds} ms.`,
  noText: "Write a sentence to translate it.",
  looksAt: (word, links) => `Writing “${word}”, the model attends to ${links}.`,
  isReadFor: (word, links) => `“${word}” is attended to while the model writes ${links}.`,
  looksAtNothing: (word) => `No word has a weight of 0.1 or more with “${word}”.`,
  link: (word, weight) => `“${word}” (${weight})`,
  list: (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`),
  unseenWords: (words) => `Not among the words that the model was trained with: ${words.join(", ")}`,
  headNote: (layer, head) =>
    head === null
      ? `Weights: mean over the heads of cross-attention, layer ${layer}.`
      : `Weights: cross-attention, layer ${layer}, head ${head}, which aligned validation sentences best.`,
};
