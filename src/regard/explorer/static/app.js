/** The explorer: five pages, one address for each of their states. */
import { element } from "../viz/controls.js";
import { chosenLanguage } from "../viz/i18n.js";
import { oneOf, read, write } from "./urlState.js";
import { asker } from "./api.js";
import { make as compare } from "./comparePage.js";
import { sentenceOf } from "./components.js";
import { make as playground } from "./playgroundPage.js";
import { TEXTS } from "./i18n.js";
import { hold, make as traces } from "./tracesPage.js";
import { make as training } from "./trainingPage.js";
import { make as translate } from "./translatePage.js";

/**
 * @typedef {{name: string, kind: string, layers: number, heads: number, parameters: number, beam_size: number,
 *   phrasebook: "fr"|"zh"|null, ready: boolean}} Run
 * @typedef {{runs: Run[], limits: Object<string, number>, playground: Object<string, string[]>}} Known
 * @import { Ask } from "./api.js"
 * @import { Texts } from "./i18n.js"
 * @typedef {{ask: Ask, known: Known, texts: Texts, language: "en"|"zh",
 *   note: (values: Object<string, any>) => void, signal: AbortSignal}} Context
 * What a page is given: whom to ask, its words, and where to note what is chosen. `signal` tells that it is left.
 * @typedef {{element: HTMLElement, repaint?: () => void}} Page
 */

/** @type {Object<string, (context: Context, values: Object<string, string>) => Page>} */
const PAGES = { translate, playground, training, compare, traces };
const ask = asker();
const last = /** @type {Object<string, Object<string, any>>} */ ({});

let language = chosenLanguage(remembered("language") ?? navigator.language);
let known = /** @type {Known|null} */ (null);
let left = new AbortController();
let shown = /** @type {Page|null} */ (null);

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const links = Object.fromEntries(Object.keys(PAGES).map((name) => [name, element("a", { className: "tab" })]));
const nav = element("nav", { className: "tabs" }, ...Object.values(links));
const languageButton = element("button", { type: "button", className: "quiet", onclick: turnLanguage });
const themeButton = element("button", { type: "button", className: "quiet icon", onclick: turnTheme });
const brand = element("a", { className: "brand", href: "#translate" });
const main = element("main", { className: "explorer", tabIndex: -1 });

function begin() {
  const theme = remembered("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  brand.append(element("img", { src: "/static/icon.svg", alt: "", width: 22, height: 22 }), "regard");
  const actions = element("div", { className: "actions" }, languageButton, themeButton);
  root.append(element("header", { className: "top" }, brand, nav, actions), main);
  addEventListener("hashchange", route);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", drop);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown?.repaint?.());
  learn();
}

/** Ask once what there is to explore. */
async function learn() {
  dress("");
  const texts = TEXTS[language];
  try {
    known = await ask("/api/runs", { busy: () => say(texts.busy) });
  } catch (error) {
    const again = element("button", { type: "button", className: "quiet", onclick: learn }, texts.again);
    main.replaceChildren(element("p", { className: "problem" }, sentenceOf(error, texts)), again);
    return;
  }
  route();
}

/** @param {string} sentence */
function say(sentence) {
  main.replaceChildren(element("p", { className: "hint" }, sentence));
}

/** Open the page that the address names. */
function route() {
  if (!known) return;
  const address = read(location.hash);
  const page = oneOf(PAGES, address.page, known.runs.length ? "translate" : "traces");
  left.abort();
  left = new AbortController();
  last[page] = address.values;
  dress(page);
  const { signal } = left;
  /** @type {Context} */
  const context = { ask, known, texts: TEXTS[language], language, signal, note: (values) => note(page, values, signal) };
  shown = PAGES[page](context, address.values);
  main.replaceChildren(shown.element);
}

/**
 * Keep the address in step with what is chosen.
 * @param {string} page
 * @param {Object<string, any>} values
 * @param {AbortSignal} signal
 */
function note(page, values, signal) {
  if (signal.aborted) return;
  last[page] = { ...last[page], ...values };
  const hash = write({ page, values: last[page] });
  links[page].href = hash;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Open a file that is dropped on any page. @param {DragEvent} event */
function drop(event) {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (!file || !known) return;
  hold(file);
  if (location.hash === "#traces") route();
  else location.hash = "#traces";
}

/** Write the words around the page. @param {string} page */
function dress(page) {
  const texts = TEXTS[language];
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.title = page ? `${texts.pages[page]} · regard` : "regard";
  nav.setAttribute("aria-label", texts.pagesName);
  for (const [name, link] of Object.entries(links)) {
    link.textContent = texts.pages[name];
    link.href = write({ page: name, values: last[name] ?? {} });
    if (name === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  links[page]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  languageButton.textContent = texts.otherLanguage;
  themeButton.setAttribute("aria-label", texts.theme);
  themeButton.title = texts.theme;
}

function turnLanguage() {
  language = language === "en" ? "zh" : "en";
  remember("language", language);
  if (known) route();
  else dress("");
}

function turnTheme() {
  const dark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  remember("theme", dark ? "light" : "dark");
  shown?.repaint?.();
}

/** A browser may forbid to remember; then each visit begins anew. @param {string} name @param {string} value */
function remember(name, value) {
  try {
    localStorage.setItem(`regard ${name}`, value);
  } catch {
    return;
  }
}

/** @param {string} name */
function remembered(name) {
  try {
    return localStorage.getItem(`regard ${name}`);
  } catch {
    return null;
  }
}

begin();
