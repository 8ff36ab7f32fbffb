/** Application shell of the explorer: navigation, language, theme, and routing by the URL's fragment. */
import { createElement } from "../viz/dom.js";
import { resolveLanguage } from "../viz/i18n.js";
import { createClient } from "./api.js";
import { createComparePage } from "./comparePage.js";
import { errorMessage } from "./components.js";
import { TEXTS } from "./i18n.js";
import { createPlaygroundPage } from "./playgroundPage.js";
import { createTracesPage, setPendingFile } from "./tracesPage.js";
import { createTrainingPage } from "./trainingPage.js";
import { createTranslatePage } from "./translatePage.js";
import { formatHash, ownKeyOr, parseHash } from "./urlState.js";

/**
 * @import { Language } from "../viz/i18n.js"
 * @import { SendRequest } from "./api.js"
 * @import { Texts } from "./i18n.js"
 * @import { Params } from "./urlState.js"
 * @typedef {{name: string, kind: string, layers: number, heads: number, parameters: number, beam_size: number,
 *   phrasebook: "fr"|"zh"|null, ready: boolean}} Run
 * @typedef {{runs: Run[], limits: Object<string, number>, playground: Object<string, string[]>}} ServerInfo
 * @typedef {{request: SendRequest, server: ServerInfo, texts: Texts, language: Language,
 *   updateParams: (params: Object<string, any>) => void, signal: AbortSignal}} Context
 * What a page is created with. `updateParams` merges parameters into the URL; `signal` aborts when the page is left.
 * @typedef {{element: HTMLElement, redraw?: () => void}} Page
 * @typedef {(context: Context, params: Params) => Page} CreatePage
 */

/** @type {Object<string, CreatePage>} */
const PAGES = {
  translate: createTranslatePage,
  playground: createPlaygroundPage,
  training: createTrainingPage,
  compare: createComparePage,
  traces: createTracesPage,
};
const request = createClient();
const pageParams = /** @type {Object<string, Object<string, any>>} */ ({}); // by page, so that its tab returns to them

let language = resolveLanguage(loadPreference("language") ?? navigator.language);
let server = /** @type {ServerInfo|null} */ (null);
let leavePage = new AbortController();
let currentPage = /** @type {Page|null} */ (null);

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const links = Object.fromEntries(Object.keys(PAGES).map((name) => [name, createElement("a", { className: "tab" })]));
const nav = createElement("nav", { className: "tabs" }, ...Object.values(links));
const languageButton = createElement("button", { type: "button", className: "button", onclick: switchLanguage });
const themeButton = createElement("button", { type: "button", className: "button theme-button", onclick: switchTheme });
const brand = createElement("a", { className: "brand", href: "#translate" });
const main = createElement("main", { className: "app-main", tabIndex: -1 });

function start() {
  const theme = loadPreference("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  brand.append(createElement("img", { src: "/static/icon.svg", alt: "", width: 22, height: 22 }), "regard");
  const actions = createElement("div", { className: "actions" }, languageButton, themeButton);
  root.append(createElement("header", { className: "app-header" }, brand, nav, actions), main);
  addEventListener("hashchange", route);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", openDroppedFile);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => currentPage?.redraw?.());
  loadServerInfo();
}

async function loadServerInfo() {
  updateHeader("");
  const texts = TEXTS[language];
  const onBusy = () => main.replaceChildren(createElement("p", { className: "hint" }, texts.busy));
  try {
    server = await request("/api/runs", { onBusy });
  } catch (error) {
    const retry = createElement("button", { type: "button", className: "button", onclick: loadServerInfo }, texts.retry);
    main.replaceChildren(createElement("p", { className: "error" }, errorMessage(error, texts)), retry);
    return;
  }
  route();
}

/** Show the page that the URL names. */
function route() {
  if (!server) return;
  const { page: requested, params } = parseHash(location.hash);
  const page = ownKeyOr(PAGES, requested, server.runs.length ? "translate" : "traces");
  leavePage.abort();
  leavePage = new AbortController();
  pageParams[page] = params;
  updateHeader(page);
  const { signal } = leavePage;
  const updateParams = (/** @type {Object<string, any>} */ changes) => setParams(page, changes, signal);
  currentPage = PAGES[page]({ request, server, texts: TEXTS[language], language, signal, updateParams }, params);
  main.replaceChildren(currentPage.element);
}

/**
 * Merge parameters into the URL without adding to the browser's history.
 * @param {string} page
 * @param {Object<string, any>} changes
 * @param {AbortSignal} signal
 */
function setParams(page, changes, signal) {
  if (signal.aborted) return;
  pageParams[page] = { ...pageParams[page], ...changes };
  const hash = formatHash(page, pageParams[page]);
  links[page].href = hash;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Open a trace file that was dropped on any page. @param {DragEvent} event */
function openDroppedFile(event) {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (!file || !server) return;
  setPendingFile(file);
  if (location.hash === "#traces") route();
  else location.hash = "#traces";
}

/** Update the texts of the header. @param {string} page */
function updateHeader(page) {
  const texts = TEXTS[language];
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.title = page ? `${texts.pages[page]} · regard` : "regard";
  nav.setAttribute("aria-label", texts.navigation);
  for (const [name, link] of Object.entries(links)) {
    link.textContent = texts.pages[name];
    link.href = formatHash(name, pageParams[name] ?? {});
    if (name === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  links[page]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  languageButton.textContent = texts.otherLanguage;
  themeButton.setAttribute("aria-label", texts.theme);
  themeButton.title = texts.theme;
}

function switchLanguage() {
  language = language === "en" ? "zh" : "en";
  savePreference("language", language);
  if (server) route();
  else updateHeader("");
}

function switchTheme() {
  const isDark = getComputedStyle(root).getPropertyValue("--theme").trim() === "dark";
  const theme = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  savePreference("theme", theme);
  currentPage?.redraw?.();
}

/**
 * Save a preference; a browser that forbids storage starts with the defaults each time.
 * @param {string} name
 * @param {string} value
 */
function savePreference(name, value) {
  try {
    localStorage.setItem(`regard ${name}`, value);
  } catch {
    return;
  }
}

/** @param {string} name */
function loadPreference(name) {
  try {
    return localStorage.getItem(`regard ${name}`);
  } catch {
    return null;
  }
}

start();
