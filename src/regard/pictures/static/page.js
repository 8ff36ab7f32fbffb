/** The page: a trace, and a reader who points, clicks and types. */
import { build, refresh } from "./controls.js";
import { fileName, hand, toCanvas } from "./download.js";
import { actionOf } from "./keys.js";
import { chosenLanguage, TEXTS } from "./language.js";
import { hear } from "./pointing.js";
import { Painter } from "./painter.js";
import { sentence } from "./sentence.js";
import { stacks as sorted } from "./stacks.js";
import { initial, step, WHOLE } from "./state.js";
import { readTrace } from "./trace.js";
import { headView } from "./view.js";

const REMEMBERED = 32; // heads whose numbers stay unpacked

/** Show a trace in an element. `start` may name kind, layer and head; `language` "en" or "zh". */
export function open(root, record, { start = {}, language = navigator.language } = {}) {
  const texts = TEXTS[chosenLanguage(language)];
  try {
    const trace = readTrace(record);
    if (!trace.looks.length) throw new Error("it holds no looks");
    show(root, trace, start, chosenLanguage(language));
  } catch (error) {
    root.textContent = texts.failed(error.message);
    throw error;
  }
}

function show(root, trace, start, language) {
  const stacks = sorted(trace);
  const views = new Map();
  let state = initial(stacks, start);
  let texts = TEXTS[language];
  let waiting = false;

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
    later();
  }

  function ask(wish) {
    if (wish === "language") {
      texts = texts === TEXTS.en ? TEXTS.zh : TEXTS.en;
      document.documentElement.lang = texts === TEXTS.en ? "en" : "zh";
    } else if (wish === "theme") {
      const dark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
    } else {
      save(wish);
    }
    later();
  }

  function save(kind) {
    const name = fileName([trace.title || trace.model, caption()], kind);
    const note = [trace.title, trace.model, caption()].filter(Boolean).join("  ·  ");
    painter.save(kind, { state, stacks, texts, view: view(), note }).then((blob) => hand(blob, name));
  }

  const parts = build(root, trace, stacks, act, ask);
  const painter = new Painter(parts, toCanvas);
  document.documentElement.lang = language;
  hear(parts, painter, { act, state: () => state, view, stacks });
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (target.tagName === "INPUT" || (target.tagName === "BUTTON" && event.key === "Enter")) return;
    const action = actionOf(event, target === parts.overview);
    if (!action) return;
    event.preventDefault();
    act(action);
  });
  new ResizeObserver(later).observe(parts.frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  render();
}
