/** Translate: type, and see the translations and where the model looked for each. */
import { element } from "../viz/controls.js";
import { ofLook, toLook, whole } from "./urlState.js";
import { isStopped } from "./api.js";
import { card, ownCard } from "./translationCards.js";
import { looking } from "./traceView.js";
import { paused } from "./debounce.js";
import { field, runChooser, runOf, sentenceOf, statusLine } from "./components.js";

const BESIDE = 4; // translations beside each other
const OWN = "own";

/** English sentences of the phrasebook, for those who do not know what to type. */
export const EXAMPLES = [
  "The cat sits on the mat.",
  "She gave the red book to her brother.",
  "The dog that is sleeping under the tree is tired.",
  "The boys do not want to read the letter.",
  "We bought the cheese and ate it.",
];

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {import("./app.js").Page} */
export function make(context, values) {
  const { known, texts } = context;
  if (!known.runs.length) return { element: element("p", { className: "hint" }, texts.noRuns) };
  let run = runOf(known, values.run);
  let text = values.text ?? (run.phrasebook ? EXAMPLES[0] : "");
  let own = values.target ?? "";
  let pick = /** @type {number|typeof OWN} */ (values.pick === OWN && own ? OWN : (whole(values.pick) ?? 0));
  let found = /** @type {import("./translationCards.js").Translation[]} */ ([]);
  let asked = new AbortController();
  context.signal.addEventListener("abort", () => asked.abort());

  const view = looking(context, (start) => context.note(ofLook(start)));
  const status = statusLine();
  const cards = element("div", { className: "cards", role: "group", "aria-label": texts.translations });
  const typed = paused(() => translate());
  const input = element("textarea", {
    rows: 2,
    value: text,
    maxLength: known.limits.max_characters,
    placeholder: texts.typeHere,
    spellcheck: false,
  });
  input.oninput = () => {
    text = input.value;
    typed.later();
  };
  const ownInput = element("textarea", { rows: 1, value: own, maxLength: known.limits.max_characters, placeholder: texts.ownPlaceholder, spellcheck: false });
  const forced = paused(() => look());
  ownInput.oninput = () => {
    own = ownInput.value;
    choose(own.trim() ? OWN : 0, forced.later);
  };
  const chooseRun = runChooser(context, run.name, (name) => {
    run = runOf(known, name);
    examples.hidden = !run.phrasebook;
    typed.now();
  });
  const examples = element("div", { className: "examples", hidden: !run.phrasebook }, element("p", {}, texts.examples),
    ...EXAMPLES.map((example) => element("button", { type: "button", className: "example", onclick: () => fill(example) }, example)));

  /** @param {string} example */
  function fill(example) {
    input.value = text = example;
    own = ownInput.value = "";
    pick = 0;
    typed.now();
  }

  /**
   * Ask for something; give undefined when it is no longer wanted or cannot be had, which is then said.
   * @param {string} path
   * @param {unknown} body
   */
  async function answer(path, body) {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    try {
      const busy = (/** @type {number} */ seconds) => status.say(texts.busyAgain(seconds));
      const given = await context.ask(path, { body, signal, keep: true, busy });
      return signal.aborted ? undefined : given;
    } catch (error) {
      if (!isStopped(error) && !signal.aborted) {
        status.say(sentenceOf(error, texts), true);
        view.ready();
      }
      return undefined;
    }
  }

  async function translate() {
    context.note({ run: run.name, text, target: own, pick: pick || "" });
    if (!text.trim()) {
      asked.abort();
      found = [];
      cards.replaceChildren();
      view.close();
      status.say(texts.nothingTyped);
      return;
    }
    status.say(texts.translating);
    view.wait();
    const n_best = Math.min(BESIDE, known.limits.max_n_best);
    const given = await answer("/api/translate", { run: run.name, text, n_best });
    if (!given) return;
    found = given.translations;
    if (pick !== OWN && pick >= found.length) pick = 0;
    draw();
    await look();
  }

  function draw() {
    const shown = found.map((translation, n) => card(translation, { chosen: pick === n, first: n === 0, texts, choose: () => choose(n, look) }));
    cards.replaceChildren(...shown);
    cards.classList.toggle("unpicked", pick === OWN);
  }

  /** @param {number|typeof OWN} which @param {() => void} then */
  function choose(which, then) {
    pick = which;
    draw();
    then();
  }

  async function look() {
    context.note({ target: own, pick: pick || "" });
    const target = pick === OWN ? own : found[pick]?.text;
    sure.replaceChildren();
    if (!target?.trim()) {
      view.close();
      status.say(found.length ? texts.emptyTranslation : texts.noTranslation);
      return;
    }
    view.wait();
    status.say(texts.reading);
    const record = await answer("/api/traces", { run: run.name, source: text, target });
    if (!record) return;
    const { layer = run.layers - 1, ...start } = toLook(values); // the last layer is where words meet
    view.show(record, { ...start, layer });
    if (pick === OWN) sure.replaceChildren(ownCard(record, own, texts));
    status.say(pick === OWN ? texts.lookingOwn : texts.lookingAt(pick + 1));
  }

  const sure = element("div", { className: "own-sure" });
  const side = element("div", { className: "panel ask" },
    field(texts.sentence, input), field(texts.run, chooseRun), examples);
  const ownField = element("div", { className: "panel own" }, field(texts.own, ownInput), sure);
  const legend = element("p", { className: "legend" }, element("span", { className: "word unsure" }, texts.unsureWord), texts.confidence);
  const right = element("div", { className: "answers" }, cards, legend, ownField, status.element);
  const page = element("div", { className: "translate" },
    element("div", { className: "upper" }, side, right), view.element);
  typed.now();
  return { element: page, repaint: view.repaint };
}
