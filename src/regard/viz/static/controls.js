/** The buttons, tabs and texts around the pictures. */
import { canGroup } from "./headView.js";

/**
 * @import { Texts } from "./i18n.js"
 * @import { Stack } from "./mapGroups.js"
 * @import { State, Wish } from "./state.js"
 * @import { Trace } from "./trace.js"
 * @typedef {ReturnType<typeof build>} Parts
 */

/**
 * Make an element with properties and children; texts are never markup.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Partial<HTMLElementTagNameMap[Name]> & {[attribute: string]: unknown}} [properties]
 * @param {...(Node|string)} children
 */
export function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (key in made) Object.assign(made, { [key]: value });
    else made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

const TOGGLES = /** @type {const} */ (["words", "folded", "stretched"]);
const MODES = /** @type {const} */ (["matrix", "lines"]);

/**
 * Build the page; `act` takes actions, `ask` what is not of the state: language, theme, files.
 * @param {HTMLElement} root
 * @param {Trace} trace
 * @param {Stack[]} stacks
 * @param {{act: (wish: Wish) => void, ask: (wish: string) => void, embedded: boolean}} page
 */
export function build(root, trace, stacks, { act, ask, embedded }) {
  /** @param {string} className @param {() => void} onclick */
  const button = (className, onclick) => element("button", { type: "button", className, onclick });
  const toggle = (/** @type {"words"|"folded"|"stretched"} */ type) => button("toggle", () => act({ type }));
  const parts = {
    tabs: stacks.map((_, to) => button("tab", () => act({ type: "tab", to }))),
    modes: MODES.map((to) => button("segment", () => act({ type: "mode", to }))),
    words: toggle("words"),
    folded: toggle("folded"),
    stretched: toggle("stretched"),
    language: button("quiet", () => ask("language")),
    theme: button("quiet icon", () => ask("theme")),
    png: button("quiet", () => ask("png")),
    svg: button("quiet", () => ask("svg")),
    json: button("quiet", () => ask("json")),
    threshold: element("input", { type: "range", min: "0", max: "0.5", step: "0.01" }),
    thresholdName: element("span"),
    thresholdValue: element("output"),
    overviewName: element("h3"),
    overview: element("canvas", { tabIndex: 0, role: "img", className: "overview" }),
    stage: element("canvas", { tabIndex: 0, role: "img", className: "stage" }),
    overlay: element("canvas", { className: "overlay", "aria-hidden": "true" }),
    caption: element("p", { className: "caption" }),
    sentence: element("p", { className: "sentence", role: "status", "aria-live": "polite" }),
    help: element("p", { className: "help" }),
  };
  parts.threshold.oninput = () => act({ type: "threshold", to: Number(parts.threshold.value) });
  const frame = element("div", { className: "frame" }, parts.stage, parts.overlay);
  const tablist = element("nav", { className: "tabs", role: "tablist" }, ...parts.tabs);
  for (const tab of parts.tabs) tab.setAttribute("role", "tab");
  const title = element("div", { className: "title" },
    element(embedded ? "h2" : "h1", { dir: "auto" }, trace.title || trace.model || "regard"),
    element("p", { dir: "auto" }, trace.title ? trace.model : ""));
  // the page around has its own
  const outer = embedded ? [] : [parts.language, parts.theme];
  const header = element("header", { className: "heading" }, title,
    element("div", { className: "actions" }, parts.png, parts.svg, parts.json, ...outer));
  const side = element("aside", { className: "side" }, parts.overviewName, element("div", { className: "scroller" }, parts.overview));
  const tools = element("div", { className: "tools" },
    element("div", { className: "segments", role: "group" }, ...parts.modes),
    parts.words, parts.folded, parts.stretched,
    element("label", { className: "threshold" }, parts.thresholdName, parts.threshold, parts.thresholdValue));
  const main = element(embedded ? "section" : "main", { className: "view" }, tools, parts.caption, frame, parts.sentence);
  root.classList.add("page");
  root.replaceChildren(header, tablist, element("div", { className: "body" }, side, main), parts.help);
  return { ...parts, frame, tablist, tools };
}

/**
 * Bring all texts and switches up to the state.
 * @param {Parts} parts
 * @param {{trace: Trace, state: State, stacks: Stack[], texts: Texts, sentence: string, caption: string}} page
 */
export function refresh(parts, { trace, state, stacks, texts, sentence, caption }) {
  const look = stacks[state.tab].looks[state.layer];
  /** @param {Element} part @param {string} text */
  const say = (part, text) => part.textContent !== text && (part.textContent = text);
  parts.tabs.forEach((tab, n) => {
    say(tab, texts.stacks[stacks[n].name] ?? stacks[n].name);
    tab.setAttribute("aria-selected", String(n === state.tab));
  });
  parts.tablist.setAttribute("aria-label", texts.attentions);
  parts.modes.forEach((mode, n) => {
    const name = MODES[n];
    say(mode, texts[name]);
    mode.setAttribute("aria-pressed", String(state.mode === name));
  });
  const tokens = [trace.tokens[look.queries], trace.tokens[look.keys]];
  const whole = canGroup(look);
  const hasWords = tokens.some(({ words }) => words !== null && new Set(words).size < words.length);
  const hasSpecial = tokens.some(({ special, padding }) => special.length + padding.length > 0);
  /** @param {boolean} has @param {string} reason */
  const why = (has, reason) => (whole ? (has ? "" : reason) : texts.reducedOnly);
  const reasons = { words: why(hasWords, texts.noWords), folded: why(hasSpecial, texts.noSpecial), stretched: "" };
  for (const name of TOGGLES) {
    const reason = reasons[name];
    say(parts[name], texts[name]);
    parts[name].disabled = reason !== "";
    parts[name].title = reason;
    parts[name].setAttribute("aria-pressed", String(state[name] && !reason));
  }
  say(parts.language, texts.language);
  say(parts.png, texts.savePng);
  say(parts.svg, texts.saveSvg);
  say(parts.json, texts.saveJson);
  parts.json.setAttribute("aria-label", texts.saveTrace);
  // of a reduced look a page holds what it draws, and no more
  parts.json.disabled = trace.looks.some((one) => one.weights === null);
  parts.json.title = parts.json.disabled ? texts.partOnly : "";
  parts.png.setAttribute("aria-label", `${texts.save} PNG`);
  parts.svg.setAttribute("aria-label", `${texts.save} SVG`);
  parts.theme.setAttribute("aria-label", texts.theme);
  parts.theme.title = texts.theme;
  say(parts.thresholdName, texts.threshold);
  say(parts.thresholdValue, state.threshold.toFixed(2));
  parts.threshold.value = String(state.threshold);
  say(parts.overviewName, texts.overview);
  parts.overview.setAttribute("aria-label", texts.overviewHelp);
  parts.stage.setAttribute("aria-label", caption);
  say(parts.caption, caption);
  say(parts.sentence, sentence);
  say(parts.help, texts.keysHelp);
}
