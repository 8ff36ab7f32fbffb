/** Components that several pages use: fields, selects, sliders and the status line. */
import { createElement } from "../viz/dom.js";
import { ApiError } from "./api.js";
import { formatCount } from "./format.js";

/**
 * @import { Context, Run, ServerInfo } from "./app.js"
 * @import { Texts } from "./i18n.js"
 */

let fieldCount = 0;

/** Return the message of an error as a sentence. @param {unknown} error @param {Texts} texts */
export function errorMessage(error, texts) {
  if (error instanceof ApiError && error.kind === "busy") return texts.stillBusy;
  if (error instanceof ApiError && error.kind === "unreachable") return texts.unreachable;
  const text = error instanceof Error ? error.message : String(error);
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?。]$/.test(sentence) ? sentence : `${sentence}.`;
}

/**
 * Create a labelled field. `content` holds the input if there is more than that.
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} className
 * @param {HTMLElement} content
 */
export function createField(label, input, className = "", content = input) {
  input.id ||= `field${fieldCount++}`;
  return createElement("div", { className: `field ${className}` }, createElement("label", { htmlFor: input.id }, label), content);
}

/**
 * Create a select of named options.
 * @param {string[]} names
 * @param {string|undefined} selected
 * @param {(name: string) => void} onSelect
 * @param {Object<string, string>} labels
 */
export function createSelect(names, selected, onSelect, labels = {}) {
  const options = names.map((name) => {
    const option = createElement("option", { value: name }, labels[name] ?? name);
    option.selected = name === selected;
    return option;
  });
  const select = createElement("select", {}, ...options);
  select.onchange = () => onSelect(select.value);
  return select;
}

/**
 * Create a field with a select of the runs, and the size of the selected one.
 * @param {Context} context
 * @param {string} selected
 * @param {(name: string) => void} onSelect
 */
export function createRunField({ server, texts }, selected, onSelect) {
  const details = createElement("small");
  const select = createSelect(server.runs.map((run) => run.name), selected, (name) => {
    showDetails(name);
    onSelect(name);
  });

  /** @param {string} name */
  function showDetails(name) {
    const run = server.runs.find((other) => other.name === name);
    details.textContent = run ? describeRun(run, texts) : "";
  }

  showDetails(selected);
  return createField(texts.run, select, "run-field", createElement("span", { className: "select-details" }, select, details));
}

/** @param {Run} run @param {Texts} texts */
function describeRun(run, texts) {
  const size = run.parameters ? texts.parameters(formatCount(run.parameters)) : "";
  return [texts.architectures[run.kind] ?? run.kind, size, run.ready ? "" : texts.notTrained].filter(Boolean).join(" · ");
}

/** Split a text into strings and, between backticks, `code`. @param {string} text @returns {(Node|string)[]} */
export function markCode(text) {
  return text.split("`").map((part, n) => (n % 2 ? createElement("code", {}, part) : part));
}

/**
 * Return the run of a name, else the first that can translate, else the first.
 * @param {ServerInfo} server
 * @param {string|undefined} name
 */
export function findRun({ runs }, name) {
  return runs.find((run) => run.name === name) ?? runs.find((run) => run.ready) ?? runs[0] ?? null;
}

/**
 * Create a field with a slider that shows its value.
 * @param {string} label
 * @param {{min: number, max: number, step: number, value: number, format: (value: number) => string,
 *   onInput: (value: number) => void}} options
 */
export function createSlider(label, { min, max, step, value, format, onInput }) {
  const input = createElement("input", { type: "range", min: String(min), max: String(max), step: String(step) });
  const output = createElement("output", {}, format(value));
  input.value = String(value);
  input.oninput = () => {
    output.textContent = format(Number(input.value));
    onInput(Number(input.value));
  };
  return createField(label, input, "", createElement("span", { className: "slider" }, input, output));
}

/**
 * Create a segmented control: buttons of which one is pressed.
 * @param {string[]} names
 * @param {Object<string, string>} labels
 * @param {string} selected
 * @param {(name: string) => void} onSelect
 */
export function createSegmentedControl(names, labels, selected, onSelect) {
  const buttons = names.map((name) => {
    const button = createElement("button", { type: "button", className: "segment" }, labels[name] ?? name);
    button.setAttribute("aria-pressed", String(name === selected));
    button.onclick = () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      onSelect(name);
    };
    return button;
  });
  return createElement("div", { className: "segmented-control", role: "group" }, ...buttons);
}

/** Create a status line. */
export function createStatus() {
  const line = createElement("p", { className: "status", role: "status" });
  return {
    element: line,
    /** @param {string} text */
    show(text, isError = false) {
      line.textContent = text;
      line.classList.toggle("error", isError);
    },
  };
}
