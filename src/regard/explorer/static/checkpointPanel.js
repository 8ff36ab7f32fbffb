/** One sentence through a training: the same head at each checkpoint, with a slider. */
import { element } from "../viz/controls.js";
import { isStopped } from "./api.js";
import { toLook } from "./urlState.js";
import { headChooser, headOf, readHeads } from "./headSelect.js";
import { map } from "./headMatrix.js";
import { newest, paused } from "./debounce.js";
import { field, sentenceOf, statusLine } from "./components.js";
import { EXAMPLES } from "./translatePage.js";

const BEAT = 700; // milliseconds a checkpoint is shown when they are played

/** @param {import("./app.js").Context} context @param {import("./app.js").Run} run @param {Object<string, string>} values */
export function checkpoints(context, run, values) {
  const { texts, known } = context;
  const names = texts.training;
  let source = values.source ?? (run.phrasebook ? EXAMPLES[0] : "");
  let target = values.target ?? "";
  let kept = /** @type {{id: string, step: number}[]} */ ([]);
  let place = -1;
  let start = /** @type {import("../viz/state.js").Start} */ ({ layer: run.layers - 1, ...clean(toLook(values)) });
  let timer = 0;
  const status = statusLine();
  const picture = map(context, { pointed: (query, key) => {
    picture.point(query, key);
    said.textContent = picture.said();
  } });
  picture.element.hidden = true;
  const said = element("p", { className: "sentence" });
  const choose = element("div");
  const step = element("output");
  const slider = element("input", { type: "range", min: "0", max: "0", step: "1", disabled: true });
  const limit = { maxLength: known.limits.max_characters, spellcheck: false, type: "text" };
  const [sourceInput, targetInput] = [element("input", { ...limit, value: source }), element("input", { ...limit, value: target })];
  const play = element("button", { type: "button", className: "quiet", onclick: () => (timer ? stop() : begin()) }, names.play);

  async function list() {
    try {
      const path = `/api/runs/${encodeURIComponent(run.name)}/checkpoints`;
      kept = (await context.ask(path, { signal: context.signal })).checkpoints;
    } catch (error) {
      if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
      return;
    }
    const asked = kept.findIndex(({ id }) => id === values.step);
    place = asked < 0 ? kept.length - 1 : asked;
    slider.max = String(Math.max(0, kept.length - 1));
    slider.value = String(place);
    slider.disabled = play.disabled = kept.length < 2;
    if (!kept.length) return status.say(names.noCheckpoints);
    fill();
  }

  /** Without a target, take the run's own translation. */
  async function fill() {
    if (!source.trim()) return status.say(names.typeSentence);
    if (!target.trim() && run.ready) {
      try {
        const body = { run: run.name, text: source, n_best: 1 };
        const found = await context.ask("/api/translate", { body, signal: context.signal, keep: true });
        if (target.trim()) return undefined;
        target = targetInput.value = found.translations[0]?.text ?? "";
      } catch (error) {
        if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
        return undefined;
      }
    }
    return target.trim() ? show(place) : status.say(names.typeTarget);
  }

  const show = newest(async (/** @type {number} */ to) => {
    place = to;
    slider.value = String(to);
    const { id, step: at } = kept[to];
    step.textContent = id === "final" ? names.final(at) : texts.training.atStep(at);
    slider.setAttribute("aria-valuetext", step.textContent);
    context.note({ source, target, step: to === kept.length - 1 ? "" : id });
    try {
      const body = { run: run.name, source, target, checkpoint: id };
      const busy = (/** @type {number} */ seconds) => status.say(texts.busyAgain(seconds));
      const record = await context.ask("/api/traces", { body, signal: context.signal, keep: true, busy });
      status.say("");
      draw(readHeads(record));
    } catch (error) {
      if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
      stop();
    }
  });

  /** @param {import("./headSelect.js").Heads} heads */
  function draw(heads) {
    const { view, names: sides, start: now } = headOf(heads, start, context.language);
    picture.element.hidden = false;
    picture.show({ view, names: sides }, texts.headName(texts.attentions[now.kind] ?? now.kind, now.layer, now.head));
    said.textContent = picture.said();
    choose.replaceChildren(headChooser(context, heads, start, (chosen) => {
      start = chosen;
      context.note(chosen);
      draw(heads);
    }));
  }

  function begin() {
    play.textContent = names.pause;
    if (place >= kept.length - 1) place = -1;
    const beat = () => {
      if (place >= kept.length - 1) return stop();
      show(place + 1);
      timer = setTimeout(beat, BEAT);
      return undefined;
    };
    beat();
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    play.textContent = names.play;
  }

  context.signal.addEventListener("abort", stop);
  slider.oninput = () => {
    stop();
    show(Number(slider.value));
  };
  const typed = paused(() => {
    if (kept.length) fill();
  });
  sourceInput.oninput = () => {
    source = sourceInput.value;
    target = targetInput.value = "";
    typed.later();
  };
  targetInput.oninput = () => {
    target = targetInput.value;
    typed.later();
  };
  list();
  const box = element("div", { className: "panel through" },
    element("h2", {}, names.through), element("p", { className: "lead" }, names.throughLead),
    element("div", { className: "pair" }, field(texts.sentence, sourceInput), field(texts.target, targetInput)),
    choose,
    field(names.checkpoint, slider, "", element("span", { className: "slider long" }, play, slider, step)),
    status.element, picture.element, said);
  return { element: box, repaint: picture.repaint };
}

/** Leave out what an address did not say. @param {object} start */
function clean(start) {
  return Object.fromEntries(Object.entries(start).filter(([, value]) => value !== undefined && value !== null));
}
