/** Trace viewer: shows every head of a trace. The one-file page and the explorer open it in an element. */
import { buildControls, updateControls } from "./controls.js";
import { describeSelection, describeView } from "./description.js";
import { downloadBlob, toFileName } from "./download.js";
import { createHeadView } from "./headView.js";
import { resolveLanguage, TEXTS } from "./i18n.js";
import { commandForKey } from "./keyboard.js";
import { groupMaps } from "./mapGroups.js";
import { listenToPointer } from "./pointer.js";
import { printInLightTheme } from "./printing.js";
import { Scene } from "./scene.js";
import { clampSelection, createState, reduce, toViewState, UNZOOMED } from "./state.js";
import { parseTrace } from "./trace.js";

const MAX_CACHED_VIEWS = 32;

/**
 * @import { Request } from "./controls.js"
 * @import { HeadView } from "./headView.js"
 * @import { Language } from "./i18n.js"
 * @import { MapGroup } from "./mapGroups.js"
 * @import { ViewOptions } from "./scene.js"
 * @import { Action, Command, ViewState } from "./state.js"
 * @import { Trace, TraceRecord } from "./trace.js"
 * @typedef {{close: () => void, viewState: () => ViewState, setLanguage: (language: string) => void,
 *   redraw: () => void, selectHead: (viewState: ViewState) => void, lockRow: (position: number|null) => void,
 *   lockedRow: () => {position: number, label: string}|null}} Viewer
 * Rows are named by the position of their first token. `selectHead` keeps all that its view state does not name.
 */

/**
 * Open a viewer in an element.
 *
 * An `embedded` viewer listens only to keys pressed inside it, and leaves language and theme to the page around it.
 * `onChange` is called with each new view state.
 * @param {HTMLElement} root
 * @param {TraceRecord} record
 * @param {{viewState?: ViewState, language?: string, embedded?: boolean, onChange?: (viewState: ViewState) => void}} [options]
 * @returns {Viewer}
 */
export function openViewer(root, record, { viewState = {}, language = navigator.language, embedded = false, onChange } = {}) {
  const texts = TEXTS[resolveLanguage(language)];
  try {
    const trace = parseTrace(record);
    if (!trace.maps.length) throw new Error(texts.noMaps);
    return createViewer(root, { record, trace }, { viewState, language: resolveLanguage(language), embedded, onChange });
  } catch (error) {
    root.textContent = texts.traceError(error instanceof Error ? error.message : String(error));
    throw error;
  }
}

/**
 * @param {HTMLElement} root
 * @param {{record: TraceRecord, trace: Trace}} source
 * @param {{viewState: ViewState, language: Language, embedded: boolean, onChange?: (viewState: ViewState) => void}} options
 * @returns {Viewer}
 */
function createViewer(root, { record, trace }, { viewState, language, embedded, onChange = () => {} }) {
  const groups = groupMaps(trace);
  const viewCache = /** @type {Map<string, HeadView>} */ (new Map());
  let state = createState(groups, viewState);
  let texts = TEXTS[language];
  let isScheduled = false;
  const closed = new AbortController();

  /**
   * Return the view of a head, by default the selected one.
   * @param {number} layer
   * @param {number} head
   * @param {ViewOptions} options
   */
  function getView(layer = state.layer, head = state.head, { tab, rows, mergeSubwords, collapseSpecial } = state) {
    const key = [tab, layer, head, rows, mergeSubwords, collapseSpecial].join();
    const cached = viewCache.get(key);
    if (cached) return cached;
    if (viewCache.size >= MAX_CACHED_VIEWS) viewCache.delete([...viewCache.keys()][0]);
    const view = createHeadView(trace, groups[tab].maps[layer], head, { rows, mergeSubwords, collapseSpecial });
    viewCache.set(key, view);
    return view;
  }

  /** Say why a head is the one to look at first, while it is shown. @param {MapGroup} group */
  function reason({ maps, selected }) {
    if (!selected || selected.candidates < 2 || state.layer !== selected.layer) return "";
    if (maps[state.layer].heads[state.head] !== selected.head) return "";
    return texts.criteria[selected.criterion]?.(selected.candidates, selected.value.toFixed(2)) ?? "";
  }

  function caption() {
    const group = groups[state.tab];
    const map = group.maps[state.layer];
    const call = map.call ? `${texts.call} ${map.call}` : "";
    const position = texts.headPosition(state.layer, map.heads[state.head]);
    return [texts.groups[group.name] ?? group.name, position, map.name, call, map.call_site, reason(group)].filter(Boolean).join(" · ");
  }

  function render() {
    isScheduled = false;
    if (closed.signal.aborted) return;
    const view = getView();
    scene.draw({ state, groups, texts, view, viewOf: getView });
    const isSelected = state.query !== null || state.key !== null;
    const map = groups[state.tab].maps[state.layer];
    const shown = { mode: scene.layout?.mode ?? state.mode, rows: state.rows }; // keys without an image have a matrix
    const description = isSelected ? describeSelection(view, state, texts) : describeView(map, shown, texts);
    updateControls(controls, { trace, state, groups, texts, description, caption: caption() });
  }

  function scheduleRender() {
    if (!isScheduled) requestAnimationFrame(render);
    isScheduled = true;
  }

  /** @param {Command} command */
  function dispatch(command) {
    const { queries, keys } = getView();
    const action = resolveCommand(command);
    if (!action || (action.type === "tab" && (action.to ?? 0) >= groups.length)) return;
    state = reduce(state, action, groups, { queries: queries.length, keys: keys.length });
    if (action.type === "move") state = { ...state, ...scene.revealSelection(state) };
    onChange(toViewState(state, groups));
    scheduleRender();
  }

  /** Turn a command that depends on the screen into an action. @param {Command} command @returns {Action|null} */
  function resolveCommand(command) {
    const { query, key, mode } = state;
    switch (command.type) {
      case "toggleLock":
        return query === null && key === null ? null : { type: "lock", query, key };
      case "resetZoom":
        return mode === "matrix" ? { type: "zoom", to: UNZOOMED } : null;
      case "zoomBy":
        return mode === "matrix" ? { type: "zoom", to: scene.zoomBy(command.factor, command.at) } : null;
      default:
        return command;
    }
  }

  /** @param {ViewState} viewState */
  function selectHead(viewState) {
    const current = toViewState(state, groups);
    const isOtherTab = (viewState.kind ?? current.kind) !== current.kind;
    const selection = isOtherTab ? { query: null, key: null } : {}; // another tab has other tokens
    state = createState(groups, { ...current, ...selection, ...viewState });
    scheduleRender();
  }

  /** @param {number|null} position */
  function lockRow(position) {
    const query = position === null ? -1 : getView().queries.findIndex(({ positions }) => positions.includes(position));
    if (query < 0) dispatch({ type: "clear" });
    else if (!state.locked || state.query !== query) dispatch({ type: "lock", query, key: null });
  }

  function lockedRow() {
    const row = state.locked && state.query !== null ? getView().queries[state.query] : null;
    return row ? { position: row.positions[0], label: row.text } : null;
  }

  /** @param {string} tag */
  function setLanguage(tag) {
    texts = TEXTS[resolveLanguage(tag)];
    if (!embedded) document.documentElement.lang = resolveLanguage(tag);
    scheduleRender();
  }

  /** @param {Request} request */
  function onRequest(request) {
    if (request === "language") {
      setLanguage(texts === TEXTS.en ? "zh" : "en");
    } else if (request === "theme") {
      const isDark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
      document.documentElement.dataset.theme = isDark ? "light" : "dark";
    } else {
      save(request);
    }
    scheduleRender();
  }

  /** @param {"png"|"svg"|"json"} format */
  function save(format) {
    if (format === "json") {
      const { selected_heads, ...traceRecord } = record; // a trace file has only what was recorded
      const blob = new Blob([JSON.stringify(traceRecord)], { type: "application/json" });
      downloadBlob(blob, toFileName([trace.title || trace.model], format));
      return;
    }
    const fileName = toFileName([trace.title || trace.model, caption()], format);
    const fullCaption = [trace.title, trace.model, caption()].filter(Boolean).join("  ·  ");
    scene.save(format, { state, groups, texts, view: getView(), caption: fullCaption }).then((blob) => downloadBlob(blob, fileName));
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const target = /** @type {Element} */ (event.target);
    if (target.tagName === "INPUT" || (target.tagName === "BUTTON" && event.key === "Enter")) return;
    const command = commandForKey(event, target === controls.overview);
    if (!command) return;
    event.preventDefault();
    dispatch(command);
  }

  const controls = buildControls(root, trace, groups, { dispatch, onRequest, embedded });
  const scene = new Scene(controls, trace.images);
  if (!embedded) document.documentElement.lang = language;
  const { queries, keys } = getView();
  state = clampSelection(state, { queries: queries.length, keys: keys.length });
  listenToPointer(controls, scene, { dispatch, getState: () => state, getView, groups });
  const { signal } = closed;
  const keyTarget = /** @type {GlobalEventHandlers} */ (embedded ? root : document);
  keyTarget.addEventListener("keydown", onKeydown, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", scheduleRender, { signal });
  if (!embedded) printInLightTheme(scene, render, signal);
  const resizeObserver = new ResizeObserver(scheduleRender);
  resizeObserver.observe(controls.frame);
  render();
  return {
    /** Remove the viewer and its listeners. */
    close() {
      closed.abort();
      resizeObserver.disconnect();
      root.replaceChildren();
    },
    viewState: () => toViewState(state, groups),
    setLanguage,
    redraw: scheduleRender,
    selectHead,
    lockRow,
    lockedRow,
  };
}
