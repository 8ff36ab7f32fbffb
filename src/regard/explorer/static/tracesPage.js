/** Traces page: traces given at start, and those of files that are opened or dropped. */
import { createElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { createStatus, errorMessage, markCode } from "./components.js";
import { formatCount } from "./format.js";
import { createTraceList } from "./traceList.js";
import { createTraceView } from "./traceView.js";
import { paramsToViewState, viewStateToParams } from "./urlState.js";

/**
 * @import { TraceRecord } from "../viz/trace.js"
 * @import { RequestOptions } from "./api.js"
 * @import { TraceInfo } from "./traceList.js"
 * @typedef {{file: File|null, traces: TraceInfo[], name: string, record: TraceRecord|null}} OpenFile
 */

const NO_FILE = /** @type {OpenFile} */ ({ file: null, traces: [], name: "", record: null });
let openFile = NO_FILE; // outlives the page, so that switching the language keeps the file

/** Set the file that the page opens next. @param {File} file */
export function setPendingFile(file) {
  openFile = { ...NO_FILE, file };
}

/** @type {import("./app.js").CreatePage} */
export function createTracesPage(context, params) {
  const { texts, server } = context;
  const status = createStatus();
  const serverList = createTraceList(texts.traces.onServer, showServerTrace);
  const fileList = createTraceList(texts.traces.inFile, showFromFile);
  const view = createTraceView(context, (viewState) => context.updateParams(viewStateToParams(viewState)));
  const input = createElement("input", { type: "file", accept: ".json,.jsonl,.txt,.gz", hidden: true });
  input.onchange = () => input.files?.[0] && loadFile(input.files[0]);
  const openButton = createElement("button", { type: "button", className: "button", onclick: () => input.click() }, texts.traces.open);
  let latest = new AbortController();
  context.signal.addEventListener("abort", () => latest.abort());

  /**
   * Send a request that replaces the one before it; return null if it is replaced itself or fails.
   * @param {string} path
   * @param {RequestOptions} [options]
   */
  async function requestLatest(path, options) {
    latest.abort();
    latest = new AbortController();
    const { signal } = latest;
    view.setLoading(true);
    try {
      const data = await context.request(path, { ...options, signal });
      status.show("");
      return signal.aborted ? null : data;
    } catch (error) {
      if (isAbortError(error)) return null;
      view.close();
      status.show(errorMessage(error, texts), true);
      return null;
    }
  }

  /** @param {File} file */
  async function loadFile(file) {
    setPendingFile(file);
    serverList.select(null);
    fileList.setTraces([]);
    context.updateParams({ name: "" });
    const limit = server.limits.max_trace_bytes;
    if (file.size > limit) {
      view.close();
      status.show(texts.traces.tooLarge(formatCount(file.size), formatCount(limit)), true);
      return;
    }
    const contents = /** @type {{traces: TraceInfo[]}|null} */ (await requestLatest("/api/traces/contents", { body: file }));
    if (!contents) return;
    openFile = { ...openFile, traces: contents.traces };
    showFileList();
    showFromFile(contents.traces[0].name);
  }

  function showFileList() {
    fileList.setTraces(openFile.traces.length > 1 ? openFile.traces : []);
  }

  /** @param {string} name */
  async function showFromFile(name) {
    const record = await requestLatest(`/api/traces/open?number=${encodeURIComponent(name)}`, { body: openFile.file });
    if (!record) return;
    openFile = { ...openFile, name, record };
    showOpenTrace();
  }

  function showOpenTrace() {
    if (!openFile.record) return;
    fileList.select(openFile.name);
    view.show(openFile.record, paramsToViewState(params));
    status.show(texts.traces.fromFile(openFile.file?.name ?? ""));
  }

  /** @param {string} name */
  async function showServerTrace(name) {
    openFile = NO_FILE;
    fileList.setTraces([]);
    serverList.select(name);
    context.updateParams({ name });
    const record = await requestLatest(`/api/traces/${encodeURIComponent(name)}`, { cache: true });
    if (record) view.show(record, paramsToViewState(params));
  }

  async function load() {
    const response = /** @type {{traces: TraceInfo[]}|null} */ (await requestLatest("/api/traces"));
    if (!response) return;
    serverList.setTraces(response.traces);
    if (openFile.record) {
      showFileList();
      showOpenTrace();
    } else if (openFile.file) loadFile(openFile.file);
    else if (params.name) showServerTrace(params.name);
    else if (response.traces.length === 1) showServerTrace(response.traces[0].name);
    else view.close();
  }

  load();
  const dropZone = createElement("div", { className: "panel drop-zone" }, createElement("p", {}, ...markCode(texts.traces.drop)), openButton, input);
  return {
    element: createElement("div", { className: "traces-page" }, serverList.element, dropZone, fileList.element, status.element, view.element),
    redraw: view.redraw,
  };
}
