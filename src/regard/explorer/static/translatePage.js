/** Translate page: a sentence, its translations, and the attention of the selected one. */
import { createElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { createField, createRunField, createStatus, errorMessage, findRun, markCode } from "./components.js";
import { debounce } from "./debounce.js";
import { createTraceView } from "./traceView.js";
import { createForcedTarget, createTranslationCard } from "./translationCards.js";
import { paramsToViewState, parseIndex, viewStateToParams } from "./urlState.js";

const MAX_TRANSLATIONS = 4;
const CUSTOM = "custom"; // selects the reader's own translation

/** English sentences that models trained on the phrasebook can translate. */
export const EXAMPLES = [
  "The cat sits on the mat.",
  "She gave the red book to her brother.",
  "The dog that is sleeping under the tree is tired.",
  "The boys do not want to read the letter.",
  "We bought the cheese and ate it.",
];

/** @type {import("./app.js").CreatePage} */
export function createTranslatePage(context, params) {
  const { server, texts } = context;
  if (!server.runs.length) return { element: createElement("p", { className: "hint" }, ...markCode(texts.noRuns)) };
  let run = findRun(server, params.run);
  let sentence = params.text ?? (run.phrasebook ? EXAMPLES[0] : "");
  let customTarget = params.target ?? "";
  let selected = /** @type {number|typeof CUSTOM} */ (params.translation === CUSTOM && customTarget ? CUSTOM : (parseIndex(params.translation) ?? 0));
  let translations = /** @type {import("./translationCards.js").Translation[]} */ ([]);
  // by kind: a trace that is asked for meanwhile must not end a translation
  const latest = { translation: new AbortController(), trace: new AbortController() };
  context.signal.addEventListener("abort", abortAll);

  const view = createTraceView(context, (viewState) => context.updateParams(viewStateToParams(viewState)));
  const status = createStatus();
  const cards = createElement("div", { className: "cards", role: "group", "aria-label": texts.translations });
  const limits = { maxLength: server.limits.max_characters, spellcheck: false };
  const sentenceInput = createElement("textarea", { ...limits, rows: 2, value: sentence, placeholder: texts.sentencePlaceholder });
  const translateSoon = debounce(() => translate());
  sentenceInput.oninput = () => {
    sentence = sentenceInput.value;
    translateSoon.schedule();
  };
  const targetInput = createElement("textarea", { ...limits, rows: 3, value: customTarget, placeholder: texts.customTargetPlaceholder });
  const traceSoon = debounce(() => showTrace());
  targetInput.oninput = () => {
    customTarget = targetInput.value;
    select(customTarget.trim() ? CUSTOM : 0, traceSoon.schedule);
  };
  const runField = createRunField(context, run.name, (name) => {
    run = findRun(server, name);
    examples.hidden = !run.phrasebook;
    translateSoon.runNow();
  });
  const examples = createElement("div", { className: "examples", hidden: !run.phrasebook }, createElement("p", {}, texts.examples),
    ...EXAMPLES.map((example) => createElement("button", { type: "button", className: "example", onclick: () => fillIn(example) }, example)));
  const unseenWords = createElement("p", { className: "unseen-words" });
  const forcedTarget = createElement("div", { className: "forced-target" });

  /** @param {string} example */
  function fillIn(example) {
    sentenceInput.value = sentence = example;
    customTarget = targetInput.value = "";
    selected = 0;
    translateSoon.runNow();
  }

  function abortAll() {
    latest.translation.abort();
    latest.trace.abort();
  }

  /**
   * Send a request that replaces the one of its kind before it; return undefined if it is replaced itself or fails.
   * @param {keyof typeof latest} kind
   * @param {string} path
   * @param {unknown} body
   */
  async function requestLatest(kind, path, body) {
    latest[kind].abort();
    latest[kind] = new AbortController();
    const { signal } = latest[kind];
    try {
      const onBusy = (/** @type {number} */ seconds) => status.show(texts.busyRetry(seconds));
      const data = await context.request(path, { body, signal, cache: true, onBusy });
      return signal.aborted ? undefined : data;
    } catch (error) {
      if (!isAbortError(error) && !signal.aborted) {
        status.show(errorMessage(error, texts), true);
        view.setLoading(false);
      }
      return undefined;
    }
  }

  async function translate() {
    context.updateParams({ run: run.name, text: sentence, target: customTarget, translation: selected || "" });
    abortAll();
    if (!sentence.trim()) {
      translations = [];
      unseenWords.textContent = "";
      cards.replaceChildren();
      view.close();
      status.show(texts.noSentence);
      return;
    }
    status.show(texts.translating);
    view.setLoading(true);
    const n_best = Math.min(MAX_TRANSLATIONS, server.limits.max_n_best);
    const data = await requestLatest("translation", "/api/translate", { run: run.name, text: sentence, n_best });
    if (!data) return;
    translations = data.translations;
    unseenWords.textContent = data.unseen_words.length ? texts.unseenWords(data.unseen_words) : "";
    if (selected !== CUSTOM && selected >= translations.length) selected = 0;
    showCards();
    await showTrace();
  }

  function showCards() {
    cards.replaceChildren(...translations.map((translation, n) => createTranslationCard(translation, {
      isSelected: selected === n,
      isBest: n === 0,
      texts,
      onSelect: () => select(n, showTrace),
    })));
  }

  /** @param {number|typeof CUSTOM} which @param {() => void} then */
  function select(which, then) {
    selected = which;
    showCards();
    then();
  }

  async function showTrace() {
    context.updateParams({ target: customTarget, translation: selected || "" });
    const target = selected === CUSTOM ? customTarget : translations[selected]?.text;
    forcedTarget.replaceChildren();
    if (!target?.trim()) {
      view.close();
      status.show(translations.length ? texts.emptyTranslation : texts.noTranslation);
      return;
    }
    view.setLoading(true);
    status.show(texts.tracing);
    const record = await requestLatest("trace", "/api/traces", { run: run.name, source: sentence, target });
    if (!record) return;
    view.show(record, paramsToViewState(params));
    if (selected === CUSTOM) forcedTarget.replaceChildren(createForcedTarget(record, customTarget, texts));
    status.show(selected === CUSTOM ? texts.attentionOfCustomTarget : texts.attentionOf(selected + 1));
  }

  const inputPanel = createElement("div", { className: "panel" },
    createField(texts.sentence, sentenceInput), runField, examples);
  const legend = createElement("p", { className: "legend" },
    createElement("span", { className: "word uncertain" }, texts.uncertainWords), texts.uncertainHelp);
  const targetPanel = createElement("div", { className: "panel custom-target" }, createField(texts.customTarget, targetInput), forcedTarget);
  const results = createElement("div", { className: "results" }, unseenWords, cards, legend);
  translateSoon.runNow();
  return {
    element: createElement("div", { className: "translate-page" },
      createElement("div", { className: "translate-input" }, inputPanel, targetPanel),
      createElement("div", { className: "translate-output" }, results, status.element, view.element)),
    redraw: view.redraw,
  };
}
