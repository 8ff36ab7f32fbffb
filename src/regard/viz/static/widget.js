/** Notebook widget: the viewer in the output of a cell; its head and locked row are traits of a Python object. */
import { createElement } from "./dom.js";
import { openViewer } from "./viewer.js";

/**
 * @import { Viewer } from "./viewer.js"
 * @typedef {{get: (name: string) => any, set: (name: string, value: unknown) => void, save_changes: () => void,
 *   on: (event: string, callback: () => void) => void, off: (event: string, callback: () => void) => void}} Model
 * the model of anywidget's front-end modules
 */

const TRAITS = /** @type {const} */ (["kind", "layer", "head", "rows", "locked_row"]);

/**
 * Show the model's trace in an element; anywidget calls this for every view. Returns a function that removes it.
 * @param {{model: Model, el: HTMLElement}} view
 */
export function render({ model, el }) {
  const root = createElement("div");
  const container = createElement("div", { className: "regard-widget" }, root);
  container.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab must not act on the viewer's keys
  container.addEventListener("keydown", (event) => event.stopPropagation());
  el.replaceChildren(container);
  let viewer = /** @type {Viewer|null} */ (null);
  let isWriting = false;

  function open() {
    viewer?.close();
    viewer = null;
    const viewState = { kind: model.get("kind"), layer: model.get("layer"), head: model.get("head"), rows: model.get("rows") };
    try {
      viewer = openViewer(root, model.get("_payload"), { viewState, embedded: true, onChange: write });
    } catch (error) {
      console.error(error); // the element says what is wrong
      return;
    }
    viewer.lockRow(model.get("locked_row"));
    write();
  }

  /** The traits as they are on the screen. @param {Viewer} shown @returns {Record<string, unknown>} */
  function traitsOf(shown) {
    const { kind, layer, head, rows } = shown.viewState();
    const row = shown.lockedRow();
    return { kind, layer, head, rows, locked_row: row?.position ?? null, locked_label: row?.label ?? null };
  }

  /** Write what has changed on the screen to the model. */
  function write() {
    if (!viewer || isWriting) return;
    const changed = Object.entries(traitsOf(viewer)).filter(([name, value]) => model.get(name) !== value);
    if (!changed.length) return;
    isWriting = true;
    for (const [name, value] of changed) model.set(name, value);
    isWriting = false;
    model.save_changes();
  }

  /** Show what has changed in the model. */
  function read() {
    if (!viewer || isWriting) return;
    const shown = traitsOf(viewer);
    if (TRAITS.every((name) => model.get(name) === shown[name])) return;
    const [kind, layer, head, rows, row] = TRAITS.map((name) => model.get(name));
    viewer.selectHead({ kind, layer, head, rows });
    // a row of another text means nothing, unless it was locked together with the change
    if (row !== shown.locked_row || kind === shown.kind) viewer.lockRow(row);
    write();
  }

  function resize() {
    container.style.height = `${model.get("height")}px`;
  }

  function applyTheme() {
    const theme = hostTheme();
    if (theme) container.dataset.theme = theme;
    else delete container.dataset.theme;
    viewer?.redraw();
  }

  resize();
  applyTheme();
  open();
  const themeObserver = new MutationObserver(applyTheme);
  themeObserver.observe(document.body, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
  const listeners = /** @type {[string, () => void][]} */ ([
    ...TRAITS.map((name) => [`change:${name}`, read]),
    ["change:_payload", open],
    ["change:height", resize],
  ]);
  for (const [event, listener] of listeners) model.on(event, listener);
  return () => {
    for (const [event, listener] of listeners) model.off(event, listener);
    themeObserver.disconnect();
    viewer?.close();
  };
}

/** The theme of JupyterLab or VS Code; null elsewhere, where the browser's preference applies. */
function hostTheme() {
  const { classList, dataset } = document.body;
  if (dataset.jpThemeLight) return dataset.jpThemeLight === "false" ? "dark" : "light";
  if (classList.contains("vscode-dark") || classList.contains("vscode-high-contrast")) return "dark";
  return classList.contains("vscode-light") ? "light" : null;
}
