/** Attention of a few words, live: scores, mask, softmax, context, and the formula of a cell. */
import { element } from "../viz/controls.js";
import { cividis, css, ink } from "../viz/colourScale.js";
import { isStopped } from "./api.js";
import { cellFormula } from "./formula.js";
import { grid } from "./matrixTable.js";
import { newest } from "./debounce.js";
import { low, plain } from "./format.js";
import { chooser, field, sentenceOf, slider, statusLine } from "./components.js";
import { plane } from "./vectorPlane.js";
import { BANDWIDTHS, fromValues, MOST, moved, request, TEMPERATURES, toggled, toValues, withWords, wordsOf } from "./attentionState.js";

/**
 * @import { Answer } from "./formula.js"
 * @import { Cell } from "./matrixTable.js"
 * @import { Scene, Side } from "./attentionState.js"
 */

const WIDE = ["gaussian", "boxcar", "triangular", "epanechnikov"]; // scores with a bandwidth

/** @param {import("./app.js").Context} context @param {Object<string, string>} values @returns {{element: HTMLElement}} */
export function attention(context, values) {
  const { known, texts, language } = context;
  const names = texts.playground;
  let scene = fromValues(values, language, known.playground);
  let answer = /** @type {Answer|null} */ (null);
  let pointed = pointedAt(values.at);
  let framed = false;
  const status = statusLine();

  const attend = newest(async (/** @type {Scene} */ asked) => {
    try {
      answer = await context.ask("/api/attend", { body: request(asked), signal: context.signal });
      status.say("");
      draw();
    } catch (error) {
      if (!isStopped(error)) status.say(sentenceOf(error, texts), true);
    }
  });

  /** Take a new scene; the server is asked once a frame at most. @param {Scene} next */
  function set(next) {
    scene = next;
    if (framed) return;
    framed = true;
    requestAnimationFrame(() => {
      framed = false;
      context.note(toValues(scene, language));
      draw();
      attend(scene);
    });
  }

  /** @param {number|null} query @param {number|null} key */
  function point(query, key) {
    pointed = [query ?? pointed[0], key ?? pointed[1]];
    context.note({ at: pointed.join() });
    draw();
  }

  /** @param {Side} kind @param {string} colour @param {(place: number) => void} pointing */
  const side = (kind, colour, pointing) => plane({
    title: names[kind],
    colour,
    name: (word, numbers) => names.vectorOf(names[kind], word, numbers),
    move: (place, to) => set(moved(scene, kind, place, to)),
    nudge: (place, by) => set(moved(scene, kind, place, by.map((far, n) => scene[kind][place][n] + far))),
    point: pointing,
  });
  const planes = {
    queries: side("queries", "var(--accent)", (place) => point(place, null)),
    keys: side("keys", "var(--pointer)", (place) => point(null, place)),
    values: side("values", "var(--value)", (place) => point(null, place)),
  };
  const grids = {
    scores: grid({ title: names.scores, hint: names.scoresHint, point }),
    mask: grid({ title: names.mask, hint: names.maskHint, point, press: (query, key) => answer && set(toggled(scene, answer.mask, query, key)) }),
    weights: grid({ title: names.weights, hint: names.weightsHint, point }),
    context: grid({ title: names.context, hint: names.contextHint, point: (query) => point(query, null) }),
  };
  const formula = element("dl", { className: "formula", "aria-live": "off" });

  function draw() {
    const { words } = scene;
    if (pointed[0] >= words.length || pointed[1] >= words.length) pointed = [0, 0];
    const fitting = answer?.weights.length === words.length ? answer : null;
    const isTurned = ["sinusoidal", "rotary"].includes(scene.positions);
    planes.queries.draw({ words, vectors: scene.queries, turned: isTurned ? fitting?.queries : null, pointed: pointed[0] });
    planes.keys.draw({ words, vectors: scene.keys, turned: isTurned ? fitting?.keys : null, pointed: pointed[1] });
    const reached = (fitting?.context ?? []).map((vector, n) => ({ vector, label: `→ ${words[n]}`, pointed: n === pointed[0] }));
    planes.values.draw({ words, vectors: scene.values, reached, pointed: pointed[1] });
    if (fitting) drawSteps(words, fitting);
    maskChoice.value = scene.mask;
    refreshFields();
  }

  /** @param {string[]} words @param {Answer} given */
  function drawSteps(words, given) {
    const { scores, mask: allowed, biased_scores: biased, weights, context: gathered } = given;
    const all = { rows: words, columns: words, pointed };
    const top = Math.max(1, ...scores.flat().map((score) => Math.abs(score ?? 0)));
    grids.scores.draw({ ...all, cell: (i, j) => signed(scores[i][j], top) });
    const seen = Math.max(1, ...biased.flat().map((score) => Math.abs(score ?? 0)));
    grids.mask.draw({ ...all, cell: (i, j) => (allowed[i][j] ? signed(biased[i][j], seen) : { text: "−∞", back: "", className: "hidden" }) });
    grids.weights.draw({ ...all, cell: (i, j) => weighed(weights[i][j]) });
    const far = Math.max(1, ...gathered.flat().map(Math.abs));
    grids.context.draw({ rows: words, columns: ["x", "y"], pointed: [pointed[0], -1], cell: (i, j) => signed(gathered[i][j], far) });
    drawFormula(words, given);
  }

  /** @param {string[]} words @param {Answer} given */
  function drawFormula(words, given) {
    const [query, key] = pointed;
    const name = names.cell(words[query], words[key], low(query + 1), low(key + 1));
    const lines = cellFormula(given, scene.values, query, key);
    formula.replaceChildren(element("dt", { className: "formula-of" }, name), element("dd"),
      ...lines.flatMap(({ step, text }) => [element("dt", {}, names.steps[step]), element("dd", {}, text)]));
  }

  const input = element("input", { type: "text", value: scene.words.join(" "), spellcheck: false });
  input.oninput = () => {
    const words = wordsOf(input.value);
    if (words.length) set(withWords(scene, words));
  };
  const change = (/** @type {keyof Scene} */ name) => (/** @type {string|number} */ value) => set({ ...scene, [name]: value });
  const [hot, wide] = [TEMPERATURES, BANDWIDTHS].map(([least, most]) => ({ least, most, step: 0.05, write: plain }));
  const temperature = slider(names.temperature, { ...hot, value: scene.temperature, oninput: change("temperature") });
  const few = { least: 0, step: 1, write: String };
  const shorten = (/** @type {number} */ count) => set({ ...scene, lengths: Math.min(count, scene.words.length) });
  const fields = {
    bandwidth: slider(names.bandwidth, { ...wide, value: scene.bandwidth, oninput: change("bandwidth") }),
    size: slider(names.size, { ...few, most: MOST - 1, value: scene.size, oninput: change("size") }),
    lengths: slider(names.length, { ...few, most: MOST, value: scene.lengths, oninput: shorten }),
  };
  const takeMask = (/** @type {string} */ mask) => set({ ...scene, mask, cells: answer?.mask ?? scene.cells });
  const maskChoice = chooser(known.playground.masks, scene.mask, takeMask, names.masks);

  function refreshFields() {
    fields.bandwidth.hidden = !WIDE.includes(scene.score);
    fields.size.hidden = scene.mask !== "window";
    fields.lengths.hidden = scene.mask !== "lengths";
  }

  const reset = element("button", { type: "button", className: "quiet", onclick: () => {
    context.note({ ...Object.fromEntries(Object.keys(toValues(scene, language)).map((name) => [name, ""])), at: "" });
    box.replaceWith(attention(context, {}).element);
  } }, names.reset);
  const controls = element("div", { className: "panel controls" },
    field(names.words, input, "wide"),
    field(names.score, chooser(known.playground.scores, scene.score, change("score"), names.scoreNames)), fields.bandwidth,
    field(names.maskName, maskChoice), fields.size, fields.lengths, temperature,
    field(names.positions, chooser(known.playground.positions, scene.positions, change("positions"), names.positionNames)), reset);
  const arrow = () => element("span", { className: "then", "aria-hidden": "true" }, "→");
  const box = element("div", { className: "attention" },
    controls, status.element,
    element("div", { className: "planes" }, ...Object.values(planes).map((one) => one.element)),
    element("div", { className: "steps" }, grids.scores.element, arrow(), grids.mask.element, arrow(), grids.weights.element, arrow(), grids.context.element),
    formula);
  refreshFields();
  draw();
  attend(scene);
  return { element: box };
}

/** @param {string|undefined} text */
function pointedAt(text) {
  const found = /^([0-7]),([0-7])$/.exec(text ?? "");
  return found ? [Number(found[1]), Number(found[2])] : [0, 2];
}

/** A number that may be below zero: one colour to each side. @param {number|null} value @param {number} top @returns {Cell} */
function signed(value, top) {
  if (value === null) return { text: "−∞", back: "", className: "hidden" };
  const share = Math.round(Math.min(1, Math.abs(value) / top) * 55);
  const colour = value < 0 ? "var(--below)" : "var(--above)";
  return { text: plain(value), back: `color-mix(in srgb, ${colour} ${share}%, var(--paper))` };
}

/** @param {number} weight @returns {Cell} */
function weighed(weight) {
  const colour = cividis(weight);
  return { text: plain(weight), back: css(colour), ink: ink(colour) };
}
