/** Chinese texts of the translator page. */

/** @type {import("./en.js").Texts} */
export const ZH = {
  otherLanguage: "English",
  theme: "主题",
  lead: "模型就在本页中，由本页自行翻译：无需网络，任何内容都不会离开本页。",
  text: "原文",
  placeholder: "请输入一个句子",
  examples: "例句",
  translation: "译文",
  read: "模型所读",
  attention: "每一层、每一个头的注意力",
  pointAtWord: "指向或轻触一个词，或用 Tab 和方向键选中它，即可看到与它对应的词。",
  translating: "正在翻译……",
  translatedIn: (milliseconds) => `翻译用时 ${milliseconds} 毫秒。`,
  noText: "请输入要翻译的句子。",
  looksAt: (word, links) => `写出“${word}”时，模型关注${links}。`,
  isReadFor: (word, links) => `模型写出${links}时关注“${word}”。`,
  looksAtNothing: (word) => `没有词与“${word}”之间的权重达到 0.1。`,
  link: (word, weight) => `“${word}”（${weight}）`,
  list: (items) => items.join("、"),
  unseenWords: (words) => `模型的训练数据中没有这些词：${words.join("、")}`,
  headNote: (layer, head) =>
    head === null
      ? `权重：第 ${layer} 层交叉注意力各头的平均值。`
      : `权重：交叉注意力第 ${layer} 层第 ${head} 个头，它与验证集句子的词对齐最为一致。`,
};
