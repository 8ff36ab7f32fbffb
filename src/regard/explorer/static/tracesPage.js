/** Traces: those named at start, and those of any file that is opened or dropped on the page. */
import { element } from "../viz/controls.js";
import { ofLook, toLook } from "./urlState.js";
import { isStopped } from "./api.js";
import { listing } from "./traceList.js";
import { looking } from "./traceView.js";
import { brief } from "./format.js";
import { sentenceOf, statusLine } from "./components.js";

/**
 * @import { TraceRecord } from "../viz/trace.js"
 * @import { About } from "./traceList.js"
 * @typedef {{file: File|null, traces: About[], name: string, record: TraceRecord|null}} Held
 */

const NOTHING = /** @type {Held} */ ({ file: null, traces: [], name: "", record: null });
let held = NOTHING;

/** Keep a file that was dropped until the page is open. @param {File} file */
export function hold(file) {
  held = { ...NOTHING, file };
}

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const { texts, known } = context;
  const names = texts.traces;
  const status = statusLine();
  const given = listing(names.given, pick);
  const several = listing(names.several, take);
  const view = looking(context, (start) => context.note(ofLook(start)));
  const input = element("input", { type: "file", accept: ".json,.jsonl,.txt,.gz", className: "file" });
  input.onchange = () => input.files?.[0] && send(input.files[0]);
  const open = element("button", { type: "button", className: "quiet", onclick: () => input.click() }, names.open);
  input.hidden = true;
  let asked = new AbortController();
  context.signal.addEventListener("abort", () => asked.abort());

  /** Ask for something; what was asked before is no longer wanted. @param {string} path @param {Object<string, unknown>} [wishes] */
  async function answer(path, wishes) {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    view.wait();
    try {
      const found = await context.ask(path, { ...wishes, signal });
      status.say("");
      return signal.aborted ? null : found;
    } catch (error) {
      if (isStopped(error)) return null;
      view.close();
      status.say(sentenceOf(error, texts), true);
      return null;
    }
  }

  /** @param {File} file */
  async function send(file) {
    hold(file);
    given.mark(null);
    several.fill([]);
    context.note({ name: "" });
    if (file.size > known.limits.max_trace_bytes) {
      view.close();
      status.say(names.tooLarge(brief(file.size), brief(known.limits.max_trace_bytes)), true);
      return;
    }
    const found = /** @type {{traces: About[]}|null} */ (await answer("/api/traces/contents", { body: file }));
    if (!found) return;
    held = { ...held, traces: found.traces };
    list();
    take(found.traces[0].name);
  }

  /** A file of one trace needs no list. */
  function list() {
    const all = held.traces.length > 1 ? held.traces : [];
    several.fill(all);
  }

  /** Open a trace of the file that is held. @param {string} name */
  async function take(name) {
    const { file } = held;
    const record = await answer(`/api/traces/open?number=${encodeURIComponent(name)}`, { body: file });
    if (!record) return;
    held = { ...held, name, record };
    show();
  }

  function show() {
    if (!held.record) return;
    several.mark(held.name);
    view.show(held.record, toLook(values));
    status.say(names.ofFile(held.file?.name ?? ""));
  }

  /** @param {string} name */
  async function pick(name) {
    held = NOTHING;
    several.fill([]);
    given.mark(name);
    context.note({ name });
    const record = await answer(`/api/traces/${encodeURIComponent(name)}`, { keep: true });
    if (record) view.show(record, toLook(values));
  }

  async function begin() {
    const found = /** @type {{traces: About[]}|null} */ (await answer("/api/traces"));
    if (!found) return;
    given.fill(found.traces);
    if (held.record) {
      list();
      show();
    } else if (held.file) send(held.file);
    else if (values.name) pick(values.name);
    else if (found.traces.length === 1) pick(found.traces[0].name);
    else view.close();
  }

  begin();
  const drop = element("div", { className: "panel drop" }, element("p", {}, names.drop), open, input);
  return {
    element: element("div", { className: "traces" }, given.element, drop, several.element, status.element, view.element),
    repaint: view.repaint,
  };
}
