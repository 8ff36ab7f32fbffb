/** English texts of the viewer. */

/**
 * @typedef {(one: string) => string} Format1
 * @typedef {(one: string, two: string) => string} Format2
 * @typedef {{groups: Object<string, string>, rowNames: {output: string, input: string},
 *   axes: Object<string, {matrix: string, lines: string}>, attendsToNothing: Format1, attendedByNothing: Format1,
 *   cellWeight: (query: string, key: string, weight: string) => string, unknownWeight: Format2, attendsTo: Format2,
 *   attendedBy: Format2, remainder: Format1, link: Format2, list: (items: string[]) => string,
 *   headPosition: (layer: number, head: number) => string,
 *   criteria: Object<string, (count: number, value: string) => string>, traceError: Format1, sentenceSeparator: string}} Formats
 * @typedef {Formats & typeof EN} Texts
 */

/** @satisfies {Formats & Object<string, unknown>} */
export const EN = {
  otherLanguage: "中文",
  groups: { encoder: "Encoder", decoder: "Decoder", cross: "Cross-attention", self: "Self-attention", causal: "Causal self-attention" },
  tabs: "Attention",
  overview: "Layers × heads",
  overviewHelp: "All heads at a glance: one row per layer, one column per head.",
  call: "call",
  matrix: "Matrix",
  lines: "Lines",
  image: "Image",
  opacity: "Opacity",
  meanOfQueries: "mean weight of all queries",
  viewModes: "View",
  options: "Display options",
  mergeSubwords: "Merge subwords",
  collapseSpecial: "Collapse special tokens",
  autoScale: "Auto-scale colours",
  threshold: "Hide below",
  theme: "Theme",
  savePng: "Save image as PNG",
  saveSvg: "Save image as SVG",
  saveJson: "Save trace as JSON",
  jsonUnavailable: "not available: this trace was summarised, and the page holds only what it draws",
  rowsLabel: "Rows:",
  rowNames: { output: "output words", input: "input words" },
  rowsHelp: "Name rows by the words that the decoder writes, or by those that it reads",
  writing: "writing",
  reading: "reading",
  decoderInput: "decoder input",
  query: "query",
  key: "key",
  weight: "weight",
  normalised: "scaled to the largest of this map",
  goldCell: "outlined: gold alignment",
  goldLine: "dashed: gold alignment",
  approximate: "only the largest weights of a row are exact",
  needsAllWeights: "needs all weights, but this map holds only a summary",
  noSubwords: "no word is split into subwords",
  noSpecial: "there are no special tokens",
  shortcuts:
    "Arrow keys: token · Shift + arrow keys: layer and head · 1–9: tab · M, L, I: view · + − 0: zoom · Enter: lock · Esc: clear",
  axes: {
    writing: {
      matrix: "A row is a word being written, a column a word being read; the brighter a cell, the larger its weight.",
      lines: "Left: words being written. Right: words being read. The thicker a line, the larger its weight.",
    },
    decoderInput: {
      matrix: "A row is a word that the decoder reads before it writes the next, a column a word of the source; the brighter a cell, the larger its weight.",
      lines: "Left: words that the decoder reads before it writes the next. Right: words of the source. The thicker a line, the larger its weight.",
    },
    query: {
      matrix: "A row is a token that attends, a column a token that it attends to; the brighter a cell, the larger its weight.",
      lines: "Left: tokens that attend. Right: tokens that they attend to. The thicker a line, the larger its weight.",
    },
  },
  imageHelp: "The image is coloured by the mean weight of all queries. Point at a token at the left to see which patches it attends to; click to lock.",
  noSelection: "Point at a token or a cell; click to lock.",
  attendsToNothing: (query) => `“${query}” attends to nothing.`,
  attendedByNothing: (key) => `Nothing attends to “${key}”.`,
  cellWeight: (query, key, weight) => `“${query}” attends to “${key}” with weight ${weight}.`,
  unknownWeight: (query, key) => `“${query}” attends to “${key}” with less than its largest weights.`,
  attendsTo: (query, links) => `“${query}” attends most to ${links}.`,
  attendedBy: (key, links) => `“${key}” is attended to most by ${links}.`,
  remainder: (weight) => `The other keys share ${weight}.`,
  locked: "Locked.",
  link: (word, weight) => `“${word}” (${weight})`,
  list: (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`),
  sentenceSeparator: " ",
  headPosition: (layer, head) => `layer ${layer}, head ${head}`,
  criteria: {
    "highest alignment score": (count, value) => `highest alignment score of ${count} heads (${value})`,
    "lowest entropy": (count, value) => `lowest entropy of ${count} heads (${value})`,
  },
  traceError: (reason) => `This trace cannot be shown: ${reason}.`,
  noMaps: "it holds no attention maps",
};
