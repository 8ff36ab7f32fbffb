/** Trace viewer within a page of the explorer. */
import { createElement } from "../viz/dom.js";
import { withoutDefaultHead } from "../viz/state.js";
import { openViewer } from "../viz/viewer.js";
import { errorMessage } from "./components.js";
import { parseHeads } from "./headSelect.js";

/**
 * @import { ViewState } from "../viz/state.js"
 * @import { TraceRecord } from "../viz/trace.js"
 * @import { Viewer } from "../viz/viewer.js"
 */

/**
 * Create an element that shows traces; `onChange` is called with each new view state, without the head if it is the one
 * that the viewer selects anyway.
 * @param {import("./app.js").Context} context
 * @param {(viewState: ViewState) => void} onChange
 */
export function createTraceView(context, onChange) {
  const element = createElement("div", { className: "trace-view" });
  let viewer = /** @type {Viewer|null} */ (null);
  let groups = /** @type {import("../viz/mapGroups.js").MapGroup[]} */ ([]);

  function close() {
    viewer?.close();
    viewer = null;
    element.classList.remove("viewer", "is-loading");
    element.replaceChildren();
  }

  context.signal.addEventListener("abort", () => viewer?.close());
  return {
    element,
    /**
     * Show a trace: at the head that was chosen for the previous one if there was one, or else at the initial one.
     * @param {TraceRecord} record
     * @param {ViewState} initial
     */
    show(record, initial) {
      const viewState = viewer ? { ...withoutDefaultHead(viewer.viewState(), groups), query: null, key: null } : initial;
      close();
      try {
        groups = parseHeads(record).groups;
        const options = { viewState, language: context.language, embedded: true };
        viewer = openViewer(element, record, { ...options, onChange: (changed) => onChange(withoutDefaultHead(changed, groups)) });
      } catch (error) {
        element.replaceChildren(createElement("p", { className: "error" }, errorMessage(error, context.texts)));
      }
    },
    /** Dim the current trace while the next one is loading. @param {boolean} isLoading */
    setLoading: (isLoading) => element.classList.toggle("is-loading", isLoading),
    close,
    redraw: () => viewer?.redraw(),
  };
}
