/** Traces: those named at start, and any that is opened or dropped on the page. */
import { element } from "../pictures/controls.js";
import { ofLook, toLook } from "./address.js";
import { isStopped } from "./api.js";
import { looking } from "./looking.js";
import { brief } from "./numbers.js";
import { sentenceOf, statusLine } from "./parts.js";

/** @import { TraceRecord } from "../pictures/trace.js" */

let held = /** @type {{file: File|null, record: TraceRecord|null}} */ ({ file: null, record: null });

/** Keep a file that was dropped until the page is open. @param {File} file */
export function hold(file) {
  held = { file, record: null };
}

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const { texts, known, signal } = context;
  const names = texts.traces;
  const status = statusLine();
  const list = element("div", { className: "cards trace-list", role: "group", "aria-label": names.given });
  const view = looking(context, (start) => context.note(ofLook(start)));
  const input = element("input", { type: "file", accept: ".json,.gz", className: "file" });
  input.onchange = () => input.files?.[0] && send(input.files[0]);
  const open = element("button", { type: "button", className: "quiet", onclick: () => input.click() }, names.open);
  input.hidden = true;

  /** @template T @param {() => Promise<T>} work @returns {Promise<T|null>} */
  async function answer(work) {
    view.wait();
    try {
      const record = await work();
      status.say("");
      return record;
    } catch (error) {
      view.close();
      if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
      return null;
    }
  }

  /** @param {File} file */
  async function send(file) {
    hold(file);
    mark(null);
    context.note({ name: "" });
    if (file.size > known.limits.trace) {
      view.close();
      status.say(names.tooLarge(brief(file.size), brief(known.limits.trace)), true);
      return;
    }
    const record = await answer(() => context.ask("/api/traces/open", { body: file, signal }));
    if (!record) return;
    held = { file, record };
    show();
  }

  function show() {
    if (!held.record) return;
    view.show(held.record, toLook(values));
    status.say(names.ofFile(held.file?.name ?? ""));
  }

  /** @param {string} name */
  async function pick(name) {
    held = { file: null, record: null };
    mark(name);
    context.note({ name });
    const record = await answer(() => context.ask(`/api/traces/${encodeURIComponent(name)}`, { signal, keep: true }));
    if (record) view.show(record, toLook(values));
  }

  /** @param {string|null} name */
  function mark(name) {
    for (const card of list.querySelectorAll("button")) card.setAttribute("aria-pressed", String(card.dataset.name === name));
  }

  async function fill() {
    const answered = await answer(() => context.ask("/api/traces", { signal }));
    list.replaceChildren(...(answered?.traces ?? []).map(card));
    list.hidden = !list.children.length;
    if (held.record) show();
    else if (held.file) send(held.file);
    else if (values.name) pick(values.name);
    else if (list.children.length === 1) pick(answered.traces[0].name);
    else view.close();
  }

  /** @param {{name: string, title: string, model: string}} about */
  function card({ name, title, model }) {
    const made = element("button", { type: "button", className: "card", onclick: () => pick(name) },
      element("span", { className: "card-text", dir: "auto" }, title || name),
      element("span", { className: "card-foot" }, [name, model].filter(Boolean).join(" · ")));
    made.dataset.name = name;
    made.setAttribute("aria-pressed", "false");
    return made;
  }

  fill();
  const drop = element("div", { className: "panel drop" }, element("p", {}, names.drop), open, input);
  return { element: element("div", { className: "traces" }, list, drop, status.element, view.element), repaint: view.repaint };
}
