/** Training: the curves of a run, live, and one head through its checkpoints. */
import { element } from "../viz/controls.js";
import { isStopped } from "./api.js";
import { chart } from "./lineChart.js";
import { checkpoints } from "./checkpointPanel.js";
import { field, runChooser, runOf, sentenceOf, statusLine } from "./components.js";
import { charts, joined } from "./logSeries.js";

/**
 * @import { Chart, Record } from "./logSeries.js"
 * @import { Texts } from "./i18n.js"
 * @typedef {Map<string, ReturnType<typeof chart>>} Drawn
 */

const LIVE = 1500; // milliseconds between looks at a log that grows
const STILL = 8000; // and at one that is finished: it may go on

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const { known, texts } = context;
  if (!known.runs.length) return { element: element("p", { className: "hint" }, texts.noRuns) };
  let run = runOf(known, values.run);
  let left = new AbortController();
  let through = /** @type {ReturnType<typeof checkpoints>|null} */ (null);
  context.signal.addEventListener("abort", () => left.abort());
  const status = statusLine();
  const light = element("span", { className: "light", "aria-hidden": "true" });
  const place = element("div", { className: "charts" });
  const below = element("div");

  /** @param {Object<string, string>} start */
  function follow(start) {
    left.abort();
    left = new AbortController();
    context.note({ run: run.name });
    place.replaceChildren();
    watch(left.signal);
    through = checkpoints({ ...context, signal: left.signal }, run, start);
    below.replaceChildren(through.element);
  }

  /** Read the log again and again; only what is new comes over the wire. @param {AbortSignal} signal */
  async function watch(signal) {
    let [records, offset] = [/** @type {Record[]} */ ([]), 0];
    const drawn = /** @type {Drawn} */ (new Map());
    while (!signal.aborted) {
      let pause = STILL;
      try {
        const path = `/api/runs/${encodeURIComponent(run.name)}/log?offset=${offset}`;
        const answer = /** @type {import("./logSeries.js").Answer} */ (await context.ask(path, { signal }));
        if (answer.next_offset !== offset || !records.length) {
          records = joined(records, offset, answer);
          draw(charts(records), drawn);
        }
        offset = answer.next_offset;
        if (!answer.finished) pause = LIVE;
        light.classList.toggle("live", !answer.finished);
        status.say(told(records, answer.finished, texts));
      } catch (error) {
        if (isStopped(error) || signal.aborted) return;
        status.say(sentenceOf(error, texts), true);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** @param {Chart[]} wanted @param {Drawn} drawn */
  function draw(wanted, drawn) {
    for (const what of wanted) {
      const known = drawn.get(what.name);
      const shown = known ?? chart(texts.training);
      if (!known) place.append(shown.element);
      drawn.set(what.name, shown);
      shown.draw(what);
    }
  }

  const choose = runChooser(context, run.name, (name) => {
    run = runOf(known, name);
    follow({});
  });
  const head = element("div", { className: "panel" },
    element("div", { className: "row" }, field(texts.run, choose, "run-field"), element("div", { className: "live-line" }, light, status.element)));
  follow(values);
  return { element: element("div", { className: "training" }, head, place, below), repaint: () => through?.repaint() };
}

/** @param {Record[]} records @param {boolean} finished @param {Texts} texts */
function told(records, finished, texts) {
  const { training } = texts;
  const latest = records.at(-1);
  if (!latest) return finished ? training.noLog : training.notBegun;
  return finished ? training.finished(latest.step) : training.live(latest.step);
}
