/** Translator page: a text, its translation as you type, which words belong together, and every layer and head. */
import { debounce } from "../../explorer/static/debounce.js";
import { createElement } from "../../viz/static/dom.js";
import { resolveLanguage } from "../../viz/static/i18n.js";
import { openViewer } from "../../viz/static/viewer.js";
import { alignWords } from "./alignment.js";
import { createAlignmentView } from "./alignmentView.js";
import { TEXTS } from "./i18n.js";
import { unseenWords } from "./unseenWords.js";
import { createClient } from "./worker.js";

/**
 * @import { Language } from "../../viz/static/i18n.js"
 * @import { ViewState } from "../../viz/static/state.js"
 * @import { TraceRecord } from "../../viz/static/trace.js"
 * @import { Viewer } from "../../viz/static/viewer.js"
 * @import { ModelRecord, Translation } from "./translator.js"
 * @import { Client } from "./worker.js"
 */

const MAX_CHARACTERS = 1000; // as in the explorer
const TYPING_PAUSE_MILLISECONDS = 150;

/**
 * Open the translator in an element.
 * @param {HTMLElement} root
 * @param {(id: string) => string} read returns the text of an element
 * @param {string} workerScript
 */
export function openTranslator(root, read, workerScript) {
  const record = /** @type {ModelRecord} */ (JSON.parse(read("model")));
  const client = createClient(record, read("parameters"), workerScript);
  const input = record.examples[0] ?? "";
  createPage(root, { record, client, language: resolveLanguage(navigator.language), input, viewState: defaultViewState(record) });
}

/** Open the viewer at the head that aligns words best, if it is known. @param {ModelRecord} record @returns {ViewState} */
function defaultViewState({ alignment_head: head }) {
  return head ? { kind: "cross", layer: head[0], head: head[1] } : {};
}

/**
 * Build the page; to change its language, it is built again.
 * @param {HTMLElement} root
 * @param {{record: ModelRecord, client: Client, language: Language, input: string, viewState: ViewState}} state
 */
function createPage(root, { record, client, language, input, viewState }) {
  const texts = TEXTS[language];
  let viewer = /** @type {Viewer|null} */ (null);
  const textArea = createElement("textarea", { id: "text", rows: 3, maxLength: MAX_CHARACTERS, spellcheck: false, value: input, placeholder: texts.placeholder, dir: "auto" });
  const status = createElement("p", { className: "translation-status" });
  const announcement = createElement("p", { className: "visually-hidden", "aria-live": "polite" });
  const alignment = createAlignmentView(texts);
  const attention = createElement("div", { className: "attention-view" });
  const headNote = createElement("p", { className: "head-note" });
  const unseenNote = createElement("p", { className: "unseen-words" });
  const trainingWords = record.training_words && new Set(record.training_words);

  async function translate() {
    status.classList.remove("error");
    status.textContent = texts.translating;
    const start = performance.now();
    try {
      const translation = await client.translate(textArea.value);
      if (!translation || !root.contains(textArea)) return;
      show(translation);
      status.textContent = translation.source.text ? texts.translatedIn((performance.now() - start).toFixed(0)) : texts.noText;
    } catch (error) {
      status.classList.add("error");
      status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {Translation} translation */
  function show(translation) {
    const aligned = translation.trace && alignWords(translation.trace, record.alignment_head);
    alignment.show(translation, aligned);
    announcement.textContent = translation.target.text;
    const unseen = trainingWords ? unseenWords(translation.source.text, trainingWords) : [];
    unseenNote.textContent = unseen.length ? texts.unseenWords(unseen) : "";
    headNote.textContent = aligned ? texts.headNote(aligned.layer, aligned.head) : "";
    showTrace(translation.trace);
  }

  /** @param {TraceRecord|null} trace */
  function showTrace(trace) {
    if (viewer) viewState = { ...viewer.viewState(), query: null, key: null };
    viewer?.close();
    viewer = null;
    attention.classList.toggle("viewer", Boolean(trace?.maps.length));
    if (trace?.maps.length) viewer = openViewer(attention, trace, { viewState, language, embedded: true });
  }

  function switchLanguage() {
    if (viewer) viewState = viewer.viewState();
    viewer?.close();
    const other = language === "en" ? "zh" : "en";
    createPage(root, { record, client, language: other, input: textArea.value, viewState });
    /** @type {HTMLElement|null} */ (root.querySelector(".language-button"))?.focus();
  }

  function switchTheme() {
    const isDark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    viewer?.redraw();
  }

  const translateSoon = debounce(translate, TYPING_PAUSE_MILLISECONDS);
  textArea.oninput = () => translateSoon.schedule();
  const examples = record.examples.map((example) => createElement("button", {
    type: "button",
    className: "example",
    onclick() {
      textArea.value = example;
      translateSoon.runNow();
    },
  }, example));
  const languageButton = createElement("button", { type: "button", className: "button language-button", onclick: switchLanguage }, texts.otherLanguage);
  const themeButton = createElement("button", { type: "button", className: "button theme-button", title: texts.theme, "aria-label": texts.theme, onclick: switchTheme });
  const header = createElement("header", { className: "translator-header" },
    createElement("div", { className: "viewer-title" }, createElement("h1", { dir: "auto" }, record.name), createElement("p", {}, texts.lead)),
    createElement("div", { className: "actions" }, languageButton, themeButton));
  const inputPanel = createElement("section", { className: "translator-panel" },
    createElement("label", { htmlFor: "text" }, texts.text), textArea,
    ...(examples.length ? [createElement("div", { className: "examples", role: "group", "aria-label": texts.examples }, ...examples)] : []));
  const outputPanel = createElement("section", { className: "translator-panel" },
    createElement("h2", {}, texts.translation), alignment.element, unseenNote, headNote, status, announcement);
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  root.replaceChildren(header, createElement("main", {},
    createElement("div", { className: "translator-columns" }, inputPanel, outputPanel),
    createElement("h2", { className: "attention-title" }, texts.attention), attention));
  translateSoon.runNow();
}
