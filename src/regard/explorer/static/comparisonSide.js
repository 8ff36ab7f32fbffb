/** One side of a comparison: a run, a sentence, its translation, and a head. */
import { createElement } from "../viz/dom.js";
import { createState } from "../viz/state.js";
import { isAbortError } from "./api.js";
import { createField, createRunField, createStatus, errorMessage, findRun } from "./components.js";
import { debounce } from "./debounce.js";
import { createHeadMatrix } from "./headMatrix.js";
import { createHeadSelect, parseHeads, selectHead } from "./headSelect.js";
import { EXAMPLES } from "./translatePage.js";
import { parseIndex } from "./urlState.js";

/**
 * @import { ViewState } from "../viz/state.js"
 * @import { SelectedHead, TraceHeads } from "./headSelect.js"
 * @import { Params } from "./urlState.js"
 * @typedef {(path: string, body: unknown) => Promise<any>} Post
 */

/**
 * Create side A (index 0) or B (index 1). `onHead` is called with each new head, or null if there is none.
 * @param {import("./app.js").Context} context
 * @param {number} index
 * @param {Params} params
 * @param {{onHover: (query: number|null, key: number|null) => void, onHead: (head: SelectedHead|null) => void}} handlers
 */
export function createComparisonSide(context, index, params, { onHover, onHead }) {
  const { texts, server } = context;
  const prefix = "ab"[index];
  const param = (/** @type {string} */ name) => /** @type {string|undefined} */ (params[`${prefix}.${name}`]);
  let run = findRun(server, param("run") ?? server.runs[index]?.name);
  let sentence = param("text") ?? (server.runs.some(({ phrasebook }) => phrasebook) ? EXAMPLES[0] : "");
  let target = param("target") ?? "";
  let viewState = /** @type {ViewState} */ ({
    kind: param("kind"),
    layer: parseIndex(param("layer")) ?? undefined,
    head: parseIndex(param("head")) ?? undefined,
    rows: params.rows,
  });
  let heads = /** @type {TraceHeads|null} */ (null);
  let latest = new AbortController();
  context.signal.addEventListener("abort", () => latest.abort());
  const status = createStatus();
  const matrix = createHeadMatrix(context, { onHover });
  const headSelect = createElement("div");
  const limits = { maxLength: server.limits.max_characters, spellcheck: false, type: "text" };
  const sentenceInput = createElement("input", { ...limits, value: sentence });
  const targetInput = createElement("input", { ...limits, value: target, placeholder: texts.compare.ownTranslation });
  matrix.element.hidden = true;

  /** @param {Object<string, unknown>} changes */
  function updateParams(changes) {
    context.updateParams(Object.fromEntries(Object.entries(changes).map(([name, value]) => [`${prefix}.${name}`, value])));
  }

  async function load() {
    latest.abort();
    latest = new AbortController();
    const { signal } = latest;
    updateParams({ run: run.name, text: sentence, target });
    const onBusy = (/** @type {number} */ seconds) => status.show(texts.busyRetry(seconds));
    /** @type {Post} */
    const post = (path, body) => context.request(path, { body, signal, cache: true, onBusy });
    status.show(texts.tracing);
    try {
      const translation = target.trim() ? target : await translate(post);
      if (signal.aborted) return;
      targetInput.placeholder = target.trim() ? texts.compare.ownTranslation : translation || texts.compare.ownTranslation;
      if (!translation) {
        showNothing(sentence.trim() ? texts.noTranslation : texts.compare.enterSentence);
        return;
      }
      const record = await post("/api/traces", { run: run.name, source: sentence, target: translation });
      if (signal.aborted) return;
      status.show("");
      matrix.element.hidden = false;
      heads = parseHeads(record);
      if (viewState.head === undefined && index === 1 && server.runs.length < 2) viewState = nextHead(heads, viewState);
      showHead(heads);
    } catch (error) {
      if (isAbortError(error) || signal.aborted) return;
      showNothing(errorMessage(error, texts), true);
    }
  }

  /** @param {string} reason */
  function showNothing(reason, isError = false) {
    status.show(reason, isError);
    heads = null;
    matrix.element.hidden = true;
    onHead(null);
  }

  /** Return the run's best translation. @param {Post} post */
  async function translate(post) {
    if (!sentence.trim()) return "";
    const { translations } = await post("/api/translate", { run: run.name, text: sentence, n_best: 1 });
    return translations[0]?.text.trim() ?? "";
  }

  /** With a single run, compare two of its heads: B starts at the next one. @param {TraceHeads} shown @param {ViewState} state */
  function nextHead({ groups }, state) {
    const { tab, layer, head } = createState(groups, state);
    const { name, maps } = groups[tab];
    return { ...state, kind: name, layer, head: maps[layer].heads[(head + 1) % maps[layer].heads.length] };
  }

  /** @param {TraceHeads} shown */
  function showHead(shown) {
    const head = selectHead(shown, viewState, context.language);
    matrix.show({ view: head.view, axisNames: head.axisNames }, head.title);
    headSelect.replaceChildren(createHeadSelect(context, shown, viewState, (position) => {
      viewState = { ...viewState, ...position };
      updateParams(position);
      showHead(shown);
    }));
    onHead(head);
  }

  const loadSoon = debounce(load);
  sentenceInput.oninput = () => {
    sentence = sentenceInput.value;
    loadSoon.schedule();
  };
  targetInput.oninput = () => {
    target = targetInput.value;
    loadSoon.schedule();
  };
  const runField = createRunField(context, run.name, (name) => {
    run = findRun(server, name);
    loadSoon.runNow();
  });
  loadSoon.runNow();
  const element = createElement("section", { className: "panel compare-panel" },
    createElement("h2", {}, texts.compare.sides[index]),
    runField, createField(texts.sentence, sentenceInput), createField(texts.target, targetInput),
    headSelect, status.element, matrix.element);
  return {
    element,
    matrix,
    /** @param {import("../viz/state.js").Rows} rows */
    setRows(rows) {
      viewState = { ...viewState, rows };
      if (heads) showHead(heads);
    },
  };
}
