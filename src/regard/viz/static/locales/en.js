/** English texts of the viewer. */

/**
 * @typedef {(one: string) => string} Format1
 * @typedef {(one: string, two: string) => string} Format2
 * @typedef {{groups: Object<string, string>, tokenLists: Object<string, string>, axes: (queries: string, keys: string) => string[],
 *   attendsToNothing: Format1, attendedByNothing: Format1,
 *   cellWeight: (query: string, key: string, weight: string) => string, unknownWeight: Format2, attendsTo: Format2,
 *   attendedBy: Format2, remainder: Format1, link: Format2, list: (items: string[]) => string,
 *   headPosition: (layer: number, head: number) => string, traceError: Format1, sentenceSeparator: string}} Formats
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
  viewModes: "View",
  mergeSubwords: "Merge subwords",
  collapseSpecial: "Collapse special tokens",
  autoScale: "Auto-scale colours",
  threshold: "Hide below",
  theme: "Theme",
  savePng: "Save image as PNG",
  saveSvg: "Save image as SVG",
  saveJson: "Save trace as JSON",
  jsonUnavailable: "not available: this trace was summarised, and the page holds only what it draws",
  tokenLists: { source: "source", target: "target", text: "text" },
  queries: "queries",
  keys: "keys",
  weight: "weight",
  axes: (queries, keys) => [`rows: ${queries}`, `columns: ${keys}`],
  goldCell: "outlined: gold alignment",
  goldLine: "dashed: gold alignment",
  approximate: "only the largest weights of each row are exact; the others are approximate",
  needsAllWeights: "needs all weights, but this map holds only a summary",
  noSubwords: "no word is split into subwords",
  noSpecial: "there are no special tokens",
  shortcuts:
    "Arrow keys: token · Shift + arrow keys: layer and head · 1–9: tab · M, L: view · + − 0: zoom · Enter: lock · Esc: clear",
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
  traceError: (reason) => `This trace cannot be shown: ${reason}.`,
  noMaps: "it holds no attention maps",
};
