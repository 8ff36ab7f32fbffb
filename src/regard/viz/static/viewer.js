/** The page: a trace, and a reader who points, clicks and types. */
import { build, refresh } from "./controls.js";
import { fileName, hand, toCanvas } from "./download.js";
import { actionOf } from "./keyboard.js";
import { chosenLanguage, TEXTS } from "./i18n.js";
import { hear } from "./pointer.js";
import { Painter } from "./scene.js";
import { sentence } from "./description.js";
import { stacks as sorted } from "./mapGroups.js";
import { initial, kept, step, told, WHOLE } from "./state.js";
import { readTrace } from "./trace.js";
import { headView } from "./headView.js";

const REMEMBERED = 32; // heads whose numbers stay unpacked

/**
 * @import { Stack } from "./mapGroups.js"
 * @import { Action, Start, State, Wish } from "./state.js"
 * @import { Trace, TraceRecord } from "./trace.js"
 * @import { View } from "./headView.js"
 * @typedef {{close: () => void, state: () => Start,
 *   speak: (language: string) => void, repaint: () => void}} Shown
 */

/**
 * Show a trace in an element.
 *
 * `start` says where to begin, `language` "en" or "zh". A page that is `embedded` in another hears
 * only keys pressed within it, and leaves language and theme to that other; `changed` is told each
 * new state, as `state()` would.
 * @param {HTMLElement} root
 * @param {TraceRecord} record
 * @param {{viewState?: Start, language?: string, embedded?: boolean, changed?: (start: Start) => void}} [options]
 * @returns {Shown}
 */
export function openViewer(root, record, { viewState: start = {}, language = navigator.language, embedded = false, changed } = {}) {
  const texts = TEXTS[chosenLanguage(language)];
  try {
    const trace = readTrace(record);
    if (!trace.looks.length) throw new Error("it holds no looks");
    return show(root, { record, trace }, { start, language: chosenLanguage(language), embedded, changed });
  } catch (error) {
    root.textContent = texts.failed(error instanceof Error ? error.message : String(error));
    throw error;
  }
}

/**
 * @param {HTMLElement} root
 * @param {{record: TraceRecord, trace: Trace}} what
 * @param {{start: Start, language: "en"|"zh", embedded: boolean, changed?: (start: Start) => void}} how
 * @returns {Shown}
 */
function show(root, { record, trace }, { start, language, embedded, changed = () => {} }) {
  const stacks = sorted(trace);
  const views = /** @type {Map<string, View>} */ (new Map());
  let state = initial(stacks, start);
  let texts = TEXTS[language];
  let waiting = false;
  const ended = new AbortController();

  /**
   * One head, told as the state wants it.
   * @param {number} layer
   * @param {number} head
   * @param {Pick<State, "tab"|"words"|"folded">} told
   */
  function view(layer = state.layer, head = state.head, { tab, words, folded } = state) {
    const key = [tab, layer, head, words, folded].join();
    const known = views.get(key);
    if (known) return known;
    if (views.size >= REMEMBERED) views.delete([...views.keys()][0]);
    const made = headView(trace, stacks[tab].looks[layer], head, { words, folded });
    views.set(key, made);
    return made;
  }

  function caption() {
    const stack = stacks[state.tab];
    const look = stack.looks[state.layer];
    const call = look.call ? `${texts.call} ${look.call}` : "";
    const place = texts.place(state.layer, look.heads[state.head]);
    return [texts.stacks[stack.name] ?? stack.name, place, look.name, call, look.place].filter(Boolean).join(" · ");
  }

  function render() {
    waiting = false;
    if (ended.signal.aborted) return;
    const shown = view();
    painter.paint({ state, stacks, texts, view: shown, viewOf: view });
    const said = sentence(shown, state, texts);
    refresh(parts, { trace, state, stacks, texts, sentence: said, caption: caption() });
  }

  function later() {
    if (!waiting) requestAnimationFrame(render);
    waiting = true;
  }

  /** Take an action; some are only known by what is on the screen. @param {Wish} wish */
  function act(wish) {
    const { queries, keys } = view();
    const action = granted(wish);
    if (!action || (action.type === "tab" && (action.to ?? 0) >= stacks.length)) return;
    state = step(state, action, stacks, { queries: queries.length, keys: keys.length });
    if (action.type === "move") state = { ...state, ...painter.revealing(state) };
    changed(told(state, stacks));
    later();
  }

  /** @param {Wish} wish @returns {Action|null} */
  function granted(wish) {
    if (wish.type === "relock") {
      const { query, key } = state;
      return query === null && key === null ? null : { type: "lock", query, key };
    }
    if (wish.type !== "nearer") return wish;
    if (state.mode !== "matrix") return null;
    return { type: "zoom", to: wish.by ? painter.nearer(wish.by, wish.at) : WHOLE };
  }

  /** @param {string} name */
  function speak(name) {
    texts = TEXTS[chosenLanguage(name)];
    if (!embedded) document.documentElement.lang = chosenLanguage(name);
    later();
  }

  /** @param {string} wish */
  function ask(wish) {
    if (wish === "language") {
      speak(texts === TEXTS.en ? "zh" : "en");
    } else if (wish === "theme") {
      const dark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
    } else {
      save(wish);
    }
    later();
  }

  /** @param {string} kind */
  function save(kind) {
    if (kind === "json") {
      const whole = new Blob([JSON.stringify(record)], { type: "application/json" });
      hand(whole, fileName([trace.title || trace.model], kind));
      return;
    }
    const name = fileName([trace.title || trace.model, caption()], kind);
    const note = [trace.title, trace.model, caption()].filter(Boolean).join("  ·  ");
    painter.save(kind, { state, stacks, texts, view: view(), note }).then((blob) => hand(blob, name));
  }

  const parts = build(root, trace, stacks, { act, ask, embedded });
  const painter = new Painter(parts, toCanvas);
  if (!embedded) document.documentElement.lang = language;
  const { queries, keys } = view();
  state = kept(state, { queries: queries.length, keys: keys.length });
  hear(parts, painter, { act, state: () => state, view, stacks });
  const press = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    if (target.tagName === "INPUT" || (target.tagName === "BUTTON" && event.key === "Enter")) return;
    const action = actionOf(event, target === parts.overview);
    if (!action) return;
    event.preventDefault();
    act(action);
  };
  const { signal } = ended;
  const heard = /** @type {GlobalEventHandlers} */ (embedded ? root : document);
  heard.addEventListener("keydown", press, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later, { signal });
  const resized = new ResizeObserver(later);
  resized.observe(parts.frame);
  render();
  return {
    /** Take the page away, and hear nothing more. */
    close() {
      ended.abort();
      resized.disconnect();
      root.replaceChildren();
    },
    state: () => told(state, stacks),
    speak,
    repaint: later,
  };
}
