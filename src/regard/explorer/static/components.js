/** Small parts that several pages are made of. */
import { element } from "../viz/controls.js";
import { Problem } from "./api.js";
import { brief } from "./format.js";

/**
 * @import { Context, Known, Run } from "./app.js"
 * @import { Texts } from "./i18n.js"
 */

let count = 0;

/** Say why there is no answer. @param {unknown} error @param {Texts} texts */
export function sentenceOf(error, texts) {
  if (error instanceof Problem && error.kind === "busy") return texts.stillBusy;
  if (error instanceof Problem && error.kind === "unreachable") return texts.unreachable;
  const text = error instanceof Error ? error.message : String(error);
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?。]$/.test(sentence) ? sentence : `${sentence}.`;
}

/**
 * A field with its name above it.
 * @param {string} name
 * @param {HTMLElement} input
 * @param {string} className
 * @param {HTMLElement} box
 */
export function field(name, input, className = "", box = input) {
  input.id ||= `field${count++}`;
  return element("div", { className: `field ${className}` }, element("label", { htmlFor: input.id }, name), box);
}

/**
 * A choice of some names. `labels` may say them otherwise.
 * @param {string[]} names
 * @param {string|undefined} chosen
 * @param {(name: string) => void} onchange
 * @param {Object<string, string>} labels
 */
export function chooser(names, chosen, onchange, labels = {}) {
  const options = names.map((name) => {
    const option = element("option", { value: name }, labels[name] ?? name);
    option.selected = name === chosen;
    return option;
  });
  const select = element("select", {}, ...options);
  select.onchange = () => onchange(select.value);
  return select;
}

/**
 * A choice among the runs, with what each of them is.
 * @param {Context} context
 * @param {string} chosen
 * @param {(name: string) => void} onchange
 */
export function runChooser(context, chosen, onchange) {
  const labels = Object.fromEntries(context.known.runs.map((run) => [run.name, runLabel(run, context.texts)]));
  return chooser(context.known.runs.map((run) => run.name), chosen, onchange, labels);
}

/** @param {Run} run @param {Texts} texts */
function runLabel(run, texts) {
  const size = run.parameters ? ` · ${texts.parameters(brief(run.parameters))}` : "";
  return `${run.name} · ${texts.kinds[run.kind] ?? run.kind}${size}${run.ready ? "" : ` · ${texts.notReady}`}`;
}

/** The run of a name, else the first that can translate, else the first. @param {Known} known @param {string|undefined} name */
export function runOf(known, name) {
  return known.runs.find((run) => run.name === name) ?? known.runs.find((run) => run.ready) ?? known.runs[0] ?? null;
}

/**
 * A field with a slider that shows its number.
 * @param {string} name
 * @param {{least: number, most: number, step: number, value: number, write: (value: number) => string,
 *   oninput: (value: number) => void}} how
 */
export function slider(name, { least, most, step, value, write, oninput }) {
  const input = element("input", { type: "range", min: String(least), max: String(most), step: String(step) });
  const output = element("output", {}, write(value));
  input.value = String(value);
  input.oninput = () => {
    output.textContent = write(Number(input.value));
    oninput(Number(input.value));
  };
  return field(name, input, "", element("span", { className: "slider" }, input, output));
}

/**
 * Buttons of which one is pressed.
 * @param {string[]} names
 * @param {Object<string, string>} labels
 * @param {string} chosen
 * @param {(name: string) => void} onchange
 */
export function segments(names, labels, chosen, onchange) {
  const buttons = names.map((name) => {
    const button = element("button", { type: "button", className: "segment" }, labels[name] ?? name);
    button.setAttribute("aria-pressed", String(name === chosen));
    button.onclick = () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      onchange(name);
    };
    return button;
  });
  return element("div", { className: "segments", role: "group" }, ...buttons);
}

/** A line that tells what is going on; a problem stands out. */
export function statusLine() {
  const line = element("p", { className: "status", role: "status" });
  return {
    element: line,
    /** @param {string} text */
    say(text, isProblem = false) {
      line.textContent = text;
      line.classList.toggle("problem", isProblem);
    },
  };
}

/**
 * Make an element of SVG.
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Object<string, string|number>} attributes
 * @param {...(Node|string)} children
 */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}
