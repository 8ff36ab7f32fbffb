/** One side of a comparison: a run, a sentence, what it shall say, and the head that is looked at. */
import { element } from "../viz/controls.js";
import { number, whole } from "./urlState.js";
import { isStopped } from "./api.js";
import { headChooser, headOf, readHeads } from "./headSelect.js";
import { map } from "./headMatrix.js";
import { paused } from "./debounce.js";
import { field, runChooser, runOf, sentenceOf, statusLine } from "./components.js";
import { EXAMPLES } from "./translatePage.js";

/**
 * @import { Start } from "../viz/state.js"
 * @import { Heads } from "./headSelect.js"
 * @typedef {ReturnType<typeof headOf>} Head
 * @typedef {(path: string, body: unknown) => Promise<any>} Ask
 */

/**
 * @param {import("./app.js").Context} context
 * @param {number} n
 * @param {Object<string, string>} values
 * @param {{pointed: (query: number|null, key: number|null) => void, ready: (head: Head|null) => void}} told
 */
export function side(context, n, values, { pointed, ready }) {
  const { texts, known } = context;
  const names = texts.compare;
  const letter = "ab"[n];
  const given = (/** @type {string} */ name) => /** @type {string|undefined} */ (values[`${letter}.${name}`]);
  let run = runOf(known, given("run") ?? known.runs[n]?.name);
  let text = given("text") ?? (known.runs.some(({ phrasebook }) => phrasebook) ? EXAMPLES[0] : "");
  let target = given("target") ?? "";
  // at first one model, one sentence, and two of its heads
  const other = known.runs.length < 2 ? n : 0;
  let start = /** @type {Start} */ ({ kind: given("kind"), layer: number(given("layer"), run.layers - 1), head: whole(given("head")) ?? other });
  let asked = new AbortController();
  context.signal.addEventListener("abort", () => asked.abort());
  const status = statusLine();
  const picture = map(context, { pointed });
  const choose = element("div");
  const limit = { maxLength: known.limits.max_characters, spellcheck: false, type: "text" };
  const input = element("input", { ...limit, value: text });
  const targetInput = element("input", { ...limit, value: target, placeholder: names.itself });
  picture.element.hidden = true;

  /** @param {Object<string, unknown>} what */
  function note(what) {
    context.note(Object.fromEntries(Object.entries(what).map(([name, value]) => [`${letter}.${name}`, value])));
  }

  async function load() {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    note({ run: run.name, text, target });
    /** @type {Ask} */
    const ask = (path, body) => context.ask(path, { body, signal, keep: true, busy: (seconds) => status.say(texts.busyAgain(seconds)) });
    status.say(texts.reading);
    try {
      const said = target.trim() ? target : await translated(ask);
      if (signal.aborted) return;
      targetInput.placeholder = target.trim() ? names.itself : said || names.itself;
      if (!said) {
        nothing(text.trim() ? texts.noTranslation : names.typeSentence);
        return;
      }
      const record = await ask("/api/traces", { run: run.name, source: text, target: said });
      if (signal.aborted) return;
      status.say("");
      picture.element.hidden = false;
      draw(readHeads(record));
    } catch (error) {
      if (isStopped(error) || signal.aborted) return;
      nothing(sentenceOf(error, texts), true);
    }
  }

  /** @param {string} why */
  function nothing(why, isProblem = false) {
    status.say(why, isProblem);
    picture.element.hidden = true;
    ready(null);
  }

  /** @param {Ask} ask */
  async function translated(ask) {
    const answer = text.trim() ? await ask("/api/translate", { run: run.name, text, n_best: 1 }) : { translations: [] };
    return answer.translations[0]?.text.trim() ?? "";
  }

  /** @param {Heads} heads */
  function draw(heads) {
    const head = headOf(heads, start, context.language);
    const { kind, layer, head: chosen } = head.start;
    picture.show(head, texts.headName(texts.attentions[kind] ?? kind, layer, chosen));
    choose.replaceChildren(headChooser(context, heads, start, (now) => {
      start = now;
      note(now);
      draw(heads);
    }));
    ready(head);
  }

  const typed = paused(load);
  input.oninput = () => {
    text = input.value;
    typed.later();
  };
  targetInput.oninput = () => {
    target = targetInput.value;
    typed.later();
  };
  const chooseRun = runChooser(context, run.name, (name) => {
    run = runOf(known, name);
    typed.now();
  });
  typed.now();
  const box = element("section", { className: "panel side-panel" }, element("h2", {}, names.sides[n]),
    field(texts.run, chooseRun), field(texts.sentence, input), field(texts.target, targetInput), choose, status.element, picture.element);
  return { element: box, map: picture };
}
