/** The words of the page, in English and Chinese. */

/**
 * @typedef {(one: string) => string} OfOne
 * @typedef {(one: string, other: string) => string} OfTwo
 * @typedef {{stacks: Object<string, string>, axes: (queries: string, keys: string) => string[], nowhere: OfOne, nobody: OfOne,
 *   cell: (query: string, key: string, weight: string) => string, unknown: OfTwo, most: OfTwo, from: OfTwo, rest: OfOne,
 *   link: OfTwo, and: (parts: string[]) => string, place: (layer: number, head: number) => string, failed: OfOne}} Sentences
 * @typedef {Sentences & typeof ENGLISH} Texts
 */

/** @satisfies {Sentences & Object<string, unknown>} */
const ENGLISH = {
  language: "中文",
  stacks: { encoder: "Encoder", decoder: "Decoder", cross: "Cross", self: "Self", causal: "Causal" },
  attentions: "Attentions",
  overview: "Layers × heads",
  overviewHelp: "All heads at a glance: a row for each layer, a column for each head.",
  layer: "layer",
  head: "head",
  call: "call",
  matrix: "Matrix",
  lines: "Lines",
  view: "View",
  words: "Whole words",
  folded: "Fold special",
  stretched: "Stretch colours",
  threshold: "Hide below",
  theme: "Theme",
  savePng: "PNG",
  saveSvg: "SVG",
  saveJson: "JSON",
  save: "Save the picture as",
  saveTrace: "Save the trace as JSON",
  partOnly: "this trace was reduced, and the page holds only what it draws of it",
  queries: "looks",
  keys: "is looked at",
  weight: "weight",
  axes: (queries, keys) => [`rows: ${queries}`, `columns: ${keys}`],
  gold: "framed: gold alignment",
  goldLine: "dashed: gold alignment",
  coarse: "only the strongest links of each row are known exactly; the rest is coarse",
  reducedOnly: "needs whole weights, but this look was reduced",
  noWords: "no words are known: each piece is one",
  noSpecial: "there are no special pieces",
  keysHelp:
    "Arrows: token · Shift + arrows: layer and head · 1–9: tab · M, L: view · + − 0: zoom · Enter: lock · Esc: release",
  idle: "Point at a word or a cell; click to lock.",
  nowhere: (query) => `“${query}” looks nowhere.`,
  nobody: (key) => `Nobody looks at “${key}”.`,
  cell: (query, key, weight) => `“${query}” looks at “${key}” with ${weight}.`,
  unknown: (query, key) => `“${query}” looks at “${key}” with less than at its strongest.`,
  most: (query, links) => `“${query}” looks most at ${links}.`,
  from: (key, links) => `“${key}” is looked at most by ${links}.`,
  rest: (weight) => `The others share ${weight}.`,
  locked: "Locked.",
  link: (word, weight) => `“${word}” (${weight})`,
  and: (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`),
  place: (layer, head) => `layer ${layer}, head ${head}`,
  failed: (why) => `This page cannot show its trace: ${why}.`,
};

/** @type {Texts} */
const CHINESE = {
  language: "English",
  stacks: { encoder: "编码器", decoder: "解码器", cross: "交叉", self: "自注意力", causal: "因果" },
  attentions: "注意力",
  overview: "层 × 头",
  overviewHelp: "所有注意力头一览：每行一层，每列一头。",
  layer: "层",
  head: "头",
  call: "调用",
  matrix: "矩阵",
  lines: "连线",
  view: "视图",
  words: "整词",
  folded: "折叠特殊符号",
  stretched: "拉伸颜色",
  threshold: "隐藏低于",
  theme: "主题",
  savePng: "PNG",
  saveSvg: "SVG",
  saveJson: "JSON",
  save: "将图片保存为",
  saveTrace: "将数据保存为 JSON",
  partOnly: "数据已被压缩，此页只保留了绘图所需的部分",
  queries: "查询",
  keys: "键",
  weight: "权重",
  axes: (queries, keys) => [`行：${queries}`, `列：${keys}`],
  gold: "方框：人工对齐",
  goldLine: "虚线：人工对齐",
  coarse: "每行只精确保留最强的链接，其余为粗略值",
  reducedOnly: "需要完整的权重，而此处的权重已被压缩",
  noWords: "没有分词信息：每个片段即一词",
  noSpecial: "没有特殊符号",
  keysHelp:
    "方向键：词元 · Shift + 方向键：层与头 · 1–9：标签页 · M、L：视图 · + − 0：缩放 · Enter：锁定 · Esc：取消",
  idle: "指向一个词或一个格子；点击可锁定。",
  nowhere: (query) => `“${query}”没有关注任何词。`,
  nobody: (key) => `没有词关注“${key}”。`,
  cell: (query, key, weight) => `“${query}”对“${key}”的权重为 ${weight}。`,
  unknown: (query, key) => `“${query}”对“${key}”的权重低于其最强的几个。`,
  most: (query, links) => `“${query}”最关注${links}。`,
  from: (key, links) => `最关注“${key}”的是${links}。`,
  rest: (weight) => `其余共占 ${weight}。`,
  locked: "已锁定。",
  link: (word, weight) => `“${word}”（${weight}）`,
  and: (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join("、")}和${parts.at(-1)}`),
  place: (layer, head) => `第 ${layer} 层，第 ${head} 头`,
  failed: (why) => `无法显示此页的数据：${why}。`,
};

/** @type {{en: Texts, zh: Texts}} */
export const TEXTS = { en: ENGLISH, zh: CHINESE };

/**
 * Choose the language of a browser: Chinese if it asks for that first, else English.
 * @param {string|null|undefined} asked
 * @returns {"en"|"zh"}
 */
export function chosenLanguage(asked) {
  return /^zh\b/i.test(asked ?? "") ? "zh" : "en";
}
