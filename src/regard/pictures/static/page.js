/** The page: a trace, and a reader who points, clicks and types. */
import { build, refresh } from "./controls.js";
import { fileName, hand, toCanvas } from "./download.js";
import { actionOf } from "./keys.js";
import { chosenLanguage, TEXTS } from "./language.js";
import { hear } from "./pointing.js";
import { Painter } from "./painter.js";
import { sentence } from "./sentence.js";
import { stacks as sorted } from "./stacks.js";
import { initial, kept, step, told, WHOLE } from "./state.js";
import { readTrace } from "./trace.js";
import { headView } from "./view.js";

const REMEMBERED = 32; // heads whose numbers stay unpacked

/**
 * @typedef {{close: () => void, state: () => import("./state.js").Start,
 *   speak: (language: string) => void, repaint: () => void}} Shown
 */

/**
 * Show a trace in an element.
 *
 * `start` says where to begin, `language` "en" or "zh". A page that is `embedded` in another hears
 * only keys pressed within it, and leaves language and theme to that other; `changed` is told each
 * new state, as `state()` would.
 * @returns {Shown}
 */
export function open(root, record, { start = {}, language = navigator.language, embedded = false, changed } = {}) {
  const texts = TEXTS[chosenLanguage(language)];
  try {
    const trace = readTrace(record);
    if (!trace.looks.length) throw new Error("it holds no looks");
    return show(root, { record, trace }, { start, language: chosenLanguage(language), embedded, changed });
  } catch (error) {
    root.textContent = texts.failed(error.message);
    throw error;
  }
}

function show(root, { record, trace }, { start, language, embedded, changed = () => {} }) {
  const stacks = sorted(trace);
  const views = new Map();
  let state = initial(stacks, start);
  let texts = TEXTS[language];
  let waiting = false;
  const ended = new AbortController();

  /** One head, told as the state wants it. */
  function view(layer = state.layer, head = state.head, { tab, words, folded } = state) {
    const key = [tab, layer, head, words, folded].join();
    if (!views.has(key)) {
      if (views.size >= REMEMBERED) views.delete(views.keys().next().value);
      views.set(key, headView(trace, stacks[tab].looks[layer], head, { words, folded }));
    }
    return views.get(key);
  }

  function caption() {
    const stack = stacks[state.tab];
    const look = stack.looks[state.layer];
    const call = look.call ? `${texts.call} ${look.call}` : "";
    const place = texts.place(state.layer, look.heads[state.head]);
    return [texts[stack.name] ?? stack.name, place, look.name, call, look.place].filter(Boolean).join(" · ");
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

  /** Take an action; some are only known by what is on the screen. */
  function act(action) {
    const { queries, keys } = view();
    if (action.type === "relock") {
      if (state.query === null && state.key === null) return;
      action = { type: "lock", query: state.query, key: state.key };
    } else if (action.type === "nearer") {
      if (state.mode !== "matrix") return;
      action = { type: "zoom", to: action.by ? painter.nearer(action.by, action.at) : WHOLE };
    }
    if (action.type === "tab" && action.to >= stacks.length) return;
    state = step(state, action, stacks, { queries: queries.length, keys: keys.length });
    if (action.type === "move") state = { ...state, ...painter.revealing(view(), state) };
    changed(told(state, stacks));
    later();
  }

  function speak(name) {
    texts = TEXTS[chosenLanguage(name)];
    if (!embedded) document.documentElement.lang = chosenLanguage(name);
    later();
  }

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
  const press = (event) => {
    const target = event.target;
    if (target.tagName === "INPUT" || (target.tagName === "BUTTON" && event.key === "Enter")) return;
    const action = actionOf(event, target === parts.overview);
    if (!action) return;
    event.preventDefault();
    act(action);
  };
  const { signal } = ended;
  (embedded ? root : document).addEventListener("keydown", press, { signal });
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
