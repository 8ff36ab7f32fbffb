/** Checkpoint panel: the same head on the same sentence at each checkpoint of a training, with a slider. */
import { createElement } from "../viz/dom.js";
import { isAbortError } from "./api.js";
import { createField, createStatus, errorMessage, markCode } from "./components.js";
import { debounce, latestOnly } from "./debounce.js";
import { createHeadMatrix } from "./headMatrix.js";
import { createHeadSelect, createRowsSwitch, parseHeads, selectHead } from "./headSelect.js";
import { EXAMPLES } from "./translatePage.js";
import { paramsToViewState } from "./urlState.js";

const FRAME_MILLISECONDS = 700; // per checkpoint while playing

/**
 * @param {import("./app.js").Context} context
 * @param {import("./app.js").Run} run
 * @param {import("./urlState.js").Params} params
 */
export function createCheckpointPanel(context, run, params) {
  const { texts, server } = context;
  let source = params.source ?? (run.phrasebook ? EXAMPLES[0] : "");
  let target = params.target ?? "";
  let checkpoints = /** @type {{id: string, step: number}[]} */ ([]);
  let index = -1;
  let viewState = /** @type {import("../viz/state.js").ViewState} */ (paramsToViewState(params));
  let shownHeads = /** @type {import("./headSelect.js").TraceHeads|null} */ (null);
  let timer = 0;
  const status = createStatus();
  const matrix = createHeadMatrix(context, { onHover: (query, key) => {
    matrix.select(query, key);
    description.textContent = matrix.describe();
  } });
  matrix.element.hidden = true;
  const description = createElement("p", { className: "description" });
  const headSelect = createElement("div");
  const rowsSwitch = createRowsSwitch(context.language, viewState.rows, (rows) => {
    viewState = { ...viewState, rows };
    context.updateParams({ rows: rows === "input" ? rows : "" });
    if (shownHeads) showHead(shownHeads);
  });
  rowsSwitch.hidden = true;
  const lead = createElement("p", { className: "lead" }, texts.training.checkpointLead);
  const stepOutput = createElement("output");
  const slider = createElement("input", { type: "range", min: "0", max: "0", step: "1", disabled: true });
  const limits = { maxLength: server.limits.max_characters, spellcheck: false, type: "text" };
  const sourceInput = createElement("input", { ...limits, value: source });
  const targetInput = createElement("input", { ...limits, value: target });
  const playButton = createElement("button", { type: "button", className: "button", onclick: () => (timer ? pause() : play()) }, texts.training.play);

  /** @param {unknown} error */
  function showError(error) {
    if (!isAbortError(error)) status.show(errorMessage(error, texts), true);
  }

  async function loadCheckpoints() {
    try {
      const path = `/api/runs/${encodeURIComponent(run.name)}/checkpoints`;
      checkpoints = (await context.request(path, { signal: context.signal })).checkpoints;
    } catch (error) {
      showError(error);
      return;
    }
    const requested = checkpoints.findIndex(({ id }) => id === params.checkpoint);
    index = requested < 0 ? checkpoints.length - 1 : requested;
    slider.max = String(Math.max(0, checkpoints.length - 1));
    slider.value = String(index);
    slider.disabled = playButton.disabled = checkpoints.length < 2;
    lead.replaceChildren(...markCode(checkpoints.length === 1 ? texts.training.oneCheckpoint : texts.training.checkpointLead));
    if (!checkpoints.length) status.show(texts.training.noCheckpoints);
    else await showSentence();
  }

  /** Show the sentence; without a target, that is the run's own translation. */
  async function showSentence() {
    if (!source.trim()) return status.show(texts.training.enterSentence);
    if (!target.trim() && run.ready) {
      try {
        const body = { run: run.name, text: source, n_best: 1 };
        const { translations } = await context.request("/api/translate", { body, signal: context.signal, cache: true });
        if (target.trim()) return undefined; // typed meanwhile
        target = targetInput.value = translations[0]?.text ?? "";
      } catch (error) {
        showError(error);
        return undefined;
      }
    }
    return target.trim() ? showCheckpoint(index) : status.show(texts.training.enterTarget);
  }

  const showCheckpoint = latestOnly(async (/** @type {number} */ newIndex) => {
    index = newIndex;
    slider.value = String(index);
    const { id, step } = checkpoints[index];
    stepOutput.textContent = id === "final" ? texts.training.final(step) : texts.training.atStep(step);
    slider.setAttribute("aria-valuetext", stepOutput.textContent);
    context.updateParams({ source, target, checkpoint: index === checkpoints.length - 1 ? "" : id });
    try {
      const body = { run: run.name, source, target, checkpoint: id };
      const onBusy = (/** @type {number} */ seconds) => status.show(texts.busyRetry(seconds));
      const record = await context.request("/api/traces", { body, signal: context.signal, cache: true, onBusy });
      status.show("");
      showHead(parseHeads(record));
    } catch (error) {
      showError(error);
      pause();
    }
  });

  /** @param {import("./headSelect.js").TraceHeads} heads */
  function showHead(heads) {
    const { view, axisNames, position, title, hasInputs } = selectHead(heads, viewState, context.language);
    viewState = { ...viewState, ...position }; // the same head at every checkpoint
    rowsSwitch.hidden = !hasInputs;
    matrix.element.hidden = false;
    matrix.show({ view, axisNames }, title);
    description.textContent = matrix.describe();
    headSelect.replaceChildren(createHeadSelect(context, heads, viewState, (chosen) => {
      viewState = { ...viewState, ...chosen };
      context.updateParams(chosen);
      showHead(heads);
    }));
    shownHeads = heads;
  }

  function play() {
    playButton.textContent = texts.training.pause;
    if (index >= checkpoints.length - 1) index = -1;
    const showNext = () => {
      if (index >= checkpoints.length - 1) return pause();
      showCheckpoint(index + 1);
      timer = setTimeout(showNext, FRAME_MILLISECONDS);
      return undefined;
    };
    showNext();
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    playButton.textContent = texts.training.play;
  }

  context.signal.addEventListener("abort", pause);
  slider.oninput = () => {
    pause();
    showCheckpoint(Number(slider.value));
  };
  const showSoon = debounce(() => {
    if (checkpoints.length) showSentence();
  });
  sourceInput.oninput = () => {
    source = sourceInput.value;
    target = targetInput.value = "";
    showSoon.schedule();
  };
  targetInput.oninput = () => {
    target = targetInput.value;
    showSoon.schedule();
  };
  loadCheckpoints();
  const sliderRow = createElement("span", { className: "slider checkpoint-slider" }, playButton, slider, stepOutput);
  const element = createElement("div", { className: "panel checkpoint-panel" },
    createElement("h2", {}, texts.training.checkpointTitle), lead,
    createElement("div", { className: "field-pair" }, createField(texts.sentence, sourceInput), createField(texts.target, targetInput)),
    createElement("div", { className: "head-controls" }, headSelect, rowsSwitch), createField(texts.training.checkpoint, slider, "", sliderRow),
    status.element, matrix.element, description);
  return { element, redraw: matrix.redraw };
}
