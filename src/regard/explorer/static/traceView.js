/** A trace within a page: every layer and head, as in the page that is one file. */
import { element } from "../viz/controls.js";
import { openViewer } from "../viz/viewer.js";
import { sentenceOf } from "./components.js";

/**
 * @import { Start } from "../viz/state.js"
 * @import { Shown } from "../viz/viewer.js"
 */

/**
 * A place for traces; `changed` is told where the reader looks.
 * @param {import("./app.js").Context} context
 * @param {(start: Start) => void} changed
 */
export function looking(context, changed) {
  const place = element("div", { className: "looking" });
  let page = /** @type {Shown|null} */ (null);

  function close() {
    page?.close();
    page = null;
    place.classList.remove("page", "waiting");
    place.replaceChildren();
  }

  context.signal.addEventListener("abort", () => page?.close());
  return {
    element: place,
    /**
     * Show a trace, at the same head as the one before if there was one.
     * @param {import("../viz/trace.js").TraceRecord} record
     * @param {Start} start
     */
    show(record, start) {
      const from = page ? { ...page.state(), query: null, key: null } : start;
      close();
      try {
        page = openViewer(place, record, { viewState: from, language: context.language, embedded: true, changed });
      } catch (error) {
        place.replaceChildren(element("p", { className: "problem" }, sentenceOf(error, context.texts)));
      }
    },
    /** What is shown is about to be replaced. */
    wait: () => place.classList.add("waiting"),
    ready: () => place.classList.remove("waiting"),
    close,
    repaint: () => page?.repaint(),
  };
}
