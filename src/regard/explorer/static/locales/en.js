/** English texts of the explorer. */

/**
 * @typedef {Object<string, string>} Names labels by identifier; what has no label is shown by its identifier
 * @typedef {(one: string) => string} Format1
 * @typedef {(one: string, two: string) => string} Format2
 * @typedef {(one: string, two: string, three: string) => string} Format3
 * @typedef {(one: string, two: string, three: string, four: string) => string} Format4
 * @typedef {(step: number) => string} FormatStep
 * @typedef {{pages: Names, architectures: Names, parameters: Format1, busyRetry: (seconds: number) => string,
 *   wordProbability: Format2, attentionOf: (rank: number) => string,
 *   playground: {panels: Names, leads: Names, scoreNames: Names, maskNames: Names, positionNames: Names, steps: Names,
 *     vectorLabel: Format3, cell: Format4},
 *   regression: {pointLabel: Format2, prediction: Format3, noPrediction: Format1},
 *   training: {charts: Names, series: Names, atStep: FormatStep, final: FormatStep, finished: FormatStep, live: FormatStep},
 *   compare: {size: Format2, summary: Format2, totalVariation: Format1, cell: Format4},
 *   traces: {tooLarge: Format2, fromFile: Format1}}} Formats
 * @typedef {Formats & typeof EN} Texts
 */

/**
 * A nested object of texts, some of whose types are given.
 * @template T
 * @typedef {{[Key in keyof T]: T[Key] extends Function|Names ? T[Key] : Nested<T[Key]>} & Object<string, unknown>} Nested
 */

/** @satisfies {Nested<Formats>} */
export const EN = {
  otherLanguage: "中文",
  theme: "Theme",
  navigation: "Pages",
  pages: { translate: "Translate", playground: "Playground", training: "Training", compare: "Compare", traces: "Traces" },
  architectures: { transformer: "Transformer", recurrent: "recurrent" },
  parameters: (count) => `${count} parameters`,
  notTrained: "not trained yet",
  retry: "Try again",
  busy: "The server is busy. Retrying …",
  busyRetry: (seconds) => `The server is busy. Retrying in ${seconds} s.`,
  stillBusy: "The server is still busy. Please try again later.",
  unreachable: "The server does not respond. Is `regard explore` still running?",
  noRuns: "The explorer was started without a run, so there is no model to translate with. Start it with `regard explore RUN`. The playground and saved traces work without one.",

  run: "Run",
  sentence: "Sentence",
  target: "Translation",
  sentencePlaceholder: "Type a sentence; it is translated when you pause.",
  examples: "Examples",
  translations: "Translations",
  translating: "Translating …",
  tracing: "Computing attention …",
  noSentence: "Type a sentence to see its translations.",
  unseenWords: (/** @type {string[]} */ words) => `Not among the words that the model was trained with: ${words.join(", ")}`,
  noTranslation: "The model returned no translation.",
  emptyTranslation: "This translation is empty, so there is no attention to show.",
  emptyText: "(empty)",
  best: "best",
  score: "score",
  scoreHelp: "Probability of the whole translation, and its beam-search score: the log-probability with the length penalty applied.",
  wordProbability: (word, probability) => `${word}: probability ${probability}`,
  uncertainWords: "Highlighted words",
  uncertainHelp: " have a low probability; point at one to see the value.",
  customTarget: "Your own translation",
  customTargetPlaceholder: "Enter another translation to see what the model attends to as it produces it.",
  attentionOf: (rank) => `Attention of translation ${rank}:`,
  attentionOfCustomTarget: "Attention of your own translation, with teacher forcing:",
  attention: "Attention",
  layer: "Layer",
  head: "Head",
  cellHint: "Point at a cell, or move from cell to cell with the arrow keys.",

  playground: {
    panels: { attention: "Attention", regression: "Kernel regression" },
    leads: {
      attention: "Each word has a query, a key and a value. Drag the arrows, or move them with the arrow keys; every number follows.",
      regression: "Nadaraya and Watson, 1964: the prediction at x is a mean of the points, weighted by how close they are to x. This is attention: x is the query, the points are keys and values.",
    },
    words: "Words (up to eight)",
    score: "Score function",
    scoreNames: {
      dot: "dot", scaled_dot: "scaled dot", cosine: "cosine", gaussian: "Gaussian", average: "average", boxcar: "boxcar",
      triangular: "triangular", epanechnikov: "Epanechnikov", bilinear: "bilinear", additive: "additive",
    },
    bandwidth: "Bandwidth b",
    mask: "Mask",
    maskNames: { none: "none", causal: "causal", window: "window", lengths: "length", cells: "custom" },
    windowSize: "Window size",
    length: "Sequence length",
    temperature: "Temperature",
    positions: "Positional encoding",
    positionNames: { none: "none", sinusoidal: "sinusoidal", rotary: "rotary (RoPE)", alibi: "ALiBi" },
    reset: "Reset",
    queries: "Queries",
    keys: "Keys",
    values: "Values, and contexts ○",
    vectorLabel: (axis, word, vector) => `${axis}: ${word} ${vector}; move it with the arrow keys`,
    scoreStep: "1  Scores",
    scoreHint: "of each query with each key",
    maskStep: "2  Mask",
    maskHint: "the input of softmax; click a cell to mask it",
    weightStep: "3  Softmax",
    weightHint: "weights; each row sums to 1",
    contextStep: "4  Context",
    contextHint: "weights × values",
    cell: (query, key, i, j) => `“${query}” (q${i}) attends to “${key}” (k${j})`,
    steps: { score: "score", adjusted: "adjusted", masked: "masked", weight: "weight", context: "context" },
  },
  regression: {
    title: "Kernel regression",
    kernel: "Kernel",
    bandwidth: "Bandwidth",
    addPoint: "Add point",
    weights: "weights at x",
    pointLabel: (x, y) => `Point ${x}, ${y}; arrow keys move it, Delete removes it, + adds another`,
    prediction: (x, sum, y) => `At x = ${x}:  ŷ = ${sum} = ${y}`,
    noPrediction: (x) => `At x = ${x}: no point is within the bandwidth, so there is no prediction.`,
    help: "Drag a point to move it · double-click the background to add one, or a point to remove it · keyboard: arrow keys, + and Delete",
  },

  training: {
    charts: { loss: "Loss", quality: "Translation quality", speed: "Speed", learning_rate: "Learning rate", tokens_per_second: "Target tokens per second" },
    series: { train_loss: "training", valid_loss: "validation", loss: "training", bleu: "BLEU", chrf: "chrF", speed: "steps per second", learning_rate: "learning rate", tokens_per_second: "tokens/s" },
    step: "step",
    atStep: (step) => `step ${step.toLocaleString("en-US")}`,
    final: (step) => (step ? `final, after step ${step.toLocaleString("en-US")}` : "final"),
    noLog: "This run has no training log.",
    notStarted: "Training has not logged anything yet; this page updates by itself.",
    finished: (step) => `Finished at step ${step.toLocaleString("en-US")}.`,
    live: (step) => `Training: step ${step.toLocaleString("en-US")}. The charts update by themselves.`,
    checkpointTitle: "Attention during training",
    checkpointLead: "The same head on the same sentence and translation, at every saved checkpoint.",
    oneCheckpoint:
      "This run kept one checkpoint. Trained with `--set train.snapshots=true`, or by `regard demo`, a run shows the same head at steps 0, 25, 50, 100 …",
    checkpoint: "Checkpoint",
    play: "Play",
    pause: "Pause",
    noCheckpoints: "This run has not saved a checkpoint yet.",
    enterSentence: "Enter a sentence to follow through training.",
    enterTarget: "Enter the translation of the sentence.",
  },
  compare: {
    lead: "Choose a run, a sentence and a head for A and for B. If their sizes match, the difference is shown as well.",
    sides: ["A", "B"],
    enterSentence: "Enter a sentence.",
    ownTranslation: "the run's own translation",
    difference: "Difference",
    minus: "B − A",
    differenceLead: "B − A: blue where B has more weight, orange where it has less.",
    size: (a, b) => `No difference can be shown: A has ${a} cells and B has ${b}. Both sentences and both translations must have the same number of words.`,
    summary: () => "No difference can be shown: of long texts only the largest weights are kept.",
    identical: "A and B are identical.",
    totalVariation: (share) => `On average, a query places ${share} of its weight differently.`,
    cell: (query, key, a, b) => `“${query}” attends to “${key}” with weight ${a} in A and ${b} in B.`,
  },
  traces: {
    onServer: "Traces loaded at start",
    open: "Open file …",
    inFile: "Traces in this file",
    drop: "Drop trace files anywhere on this page, or open one: a single trace, as the JSON button of every view saves it, or one trace per line, as `regard translate --traces` writes it; gzip is fine. Files are read and shown, never stored.",
    tooLarge: (size, limit) => `This file has ${size} bytes; the limit is ${limit}.`,
    fromFile: (name) => `From the file ${name}. A link cannot restore it, because files are not stored.`,
  },
};
