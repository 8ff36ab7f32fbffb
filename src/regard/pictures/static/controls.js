/** The buttons, tabs and texts around the pictures. */
import { canGroup } from "./view.js";

/** Make an element with properties and children; texts are never markup. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Build the page; `act` takes actions, `ask` what is not of the state: language, theme, files. */
export function build(root, trace, stacks, { act, ask, embedded }) {
  const button = (className, onclick) => element("button", { type: "button", className, onclick });
  const toggle = (type) => button("toggle", () => act({ type }));
  const parts = {
    tabs: stacks.map((_, to) => button("tab", () => act({ type: "tab", to }))),
    modes: ["matrix", "lines"].map((to) => button("segment", () => act({ type: "mode", to }))),
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
  parts.frame = element("div", { className: "frame" }, parts.stage, parts.overlay);
  parts.tablist = element("nav", { className: "tabs", role: "tablist" }, ...parts.tabs);
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
  parts.tools = tools;
  const main = element(embedded ? "section" : "main", { className: "view" }, tools, parts.caption, parts.frame, parts.sentence);
  root.classList.add("page");
  root.replaceChildren(header, parts.tablist, element("div", { className: "body" }, side, main), parts.help);
  return parts;
}

/** Bring all texts and switches up to the state. */
export function refresh(parts, { trace, state, stacks, texts, sentence, caption }) {
  const look = stacks[state.tab].looks[state.layer];
  const say = (part, text) => part.textContent !== text && (part.textContent = text);
  parts.tabs.forEach((tab, n) => {
    say(tab, texts[stacks[n].name] ?? stacks[n].name);
    tab.setAttribute("aria-selected", String(n === state.tab));
  });
  parts.tablist.setAttribute("aria-label", texts.attentions);
  parts.modes.forEach((mode, n) => {
    const name = ["matrix", "lines"][n];
    say(mode, texts[name]);
    mode.setAttribute("aria-pressed", String(state.mode === name));
  });
  const tokens = [trace.tokens[look.queries], trace.tokens[look.keys]];
  const whole = canGroup(look);
  const hasWords = tokens.some(({ words }) => words && new Set(words).size < words.length);
  const hasSpecial = tokens.some(({ special, padding }) => special.length + padding.length > 0);
  const why = (has, reason) => (whole ? (has ? "" : reason) : texts.reducedOnly);
  const toggles = { words: why(hasWords, texts.noWords), folded: why(hasSpecial, texts.noSpecial), stretched: "" };
  for (const [name, reason] of Object.entries(toggles)) {
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
  for (const [part, name] of [[parts.png, "PNG"], [parts.svg, "SVG"]]) part.setAttribute("aria-label", `${texts.save} ${name}`);
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
