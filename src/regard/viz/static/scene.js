/** What is drawn where, and drawn anew only when it changed. */
import * as lines from "./lines.js";
import * as matrix from "./matrix.js";
import * as overview from "./overview.js";
import { layout, revealed, zoomed } from "./layout.js";
import { canvasPen, svgPen } from "./renderer.js";
import { WHOLE } from "./state.js";

/**
 * @import { Texts } from "./i18n.js"
 * @import { Pen, Theme, ToCanvas } from "./renderer.js"
 * @import { Size } from "./layout.js"
 * @import { Stack } from "./mapGroups.js"
 * @import { State, Zoom } from "./state.js"
 * @import { View } from "./headView.js"
 * @typedef {import("./layout.js").Placed|import("./lines.js").Placed} Placed
 * @typedef {(layer: number, head: number, told?: {tab: number, words: boolean, folded: boolean}) => View} ViewOf
 * @typedef {{state: State, stacks: Stack[], texts: Texts, view: View}} Shown
 * @typedef {ReturnType<Painter["scene"]>} Scene
 */

const NOTE = 30; // pixels below a saved picture, for its caption

export class Painter {
  /**
   * @param {{frame: HTMLElement, stage: HTMLCanvasElement, overlay: HTMLCanvasElement, overview?: HTMLCanvasElement}} parts
   * @param {ToCanvas} toCanvas
   */
  constructor(parts, toCanvas) {
    this.parts = parts;
    this.toCanvas = toCanvas;
    this.widths = /** @type {Map<string, number>} */ (new Map());
    this.drawn = /** @type {Object<string, string>} */ ({});
    this.placed = /** @type {Placed|null} */ (null);
    this.overview = /** @type {overview.Placed|null} */ (null);
    this.thumbnails = document.createElement("canvas");
    this.showOverview = () => {};
    this.measuring = contextOf(document.createElement("canvas"));
    this.measuring.font = "13px system-ui, sans-serif";
  }

  /** Draw all that changed. @param {Shown & {viewOf: ViewOf}} shown */
  paint({ state, stacks, texts, view, viewOf }) {
    const theme = this.theme();
    this.paintOverview(state, stacks[state.tab], theme, viewOf);
    const size = this.size();
    const scene = this.scene(state, stacks, texts, view, theme, size);
    const { placed } = scene;
    const seen = placed.mode === "lines" ? [state.query, state.key, state.scroll] : [placed.zoom];
    this.changed("stage", [chosen(state), seen, size, theme.name, texts.weight], () => {
      const context = fresh(this.parts.stage, size);
      this.drawScene(canvasPen(context, this.toCanvas), scene, devicePixelRatio);
    });
    this.placed = placed;
    const over = canvasPen(fresh(this.parts.overlay, size), this.toCanvas);
    if (placed.mode === "matrix") matrix.drawPointer(over, view, placed, state, theme);
  }

  /**
   * Gather what a drawing of the stage needs.
   * @param {State} state
   * @param {Stack[]} stacks
   * @param {Texts} texts
   * @param {View} view
   * @param {Theme} theme
   * @param {Size} size
   */
  scene(state, stacks, texts, view, theme, size) {
    const look = stacks[state.tab].looks[state.layer];
    const names = { queries: `${look.queries} · ${texts.queries}`, keys: `${look.keys} · ${texts.keys}` };
    const top = state.stretched ? view.maximum || 1 : 1;
    /** @type {Placed} */
    const placed =
      state.mode === "matrix"
        ? layout(size, view, state.zoom, (text) => this.measure(text))
        : lines.layout(size, view, state.scroll);
    return { view, placed, top, threshold: state.threshold, theme, texts, names, pointer: state };
  }

  /** @param {Pen} pen @param {Scene} scene @param {number} ratio */
  drawScene(pen, scene, ratio) {
    const { view, placed, ...how } = scene;
    if (placed.mode === "matrix") matrix.draw(pen, view, placed, { ...how, ratio });
    else lines.draw(pen, view, placed, how);
  }

  /** Make a file of the current view. @param {string} kind @param {Shown & {note: string}} shown @returns {Promise<Blob>} */
  save(kind, { state, stacks, texts, view, note }) {
    const size = this.size();
    const theme = this.theme();
    const scene = this.scene(state, stacks, texts, view, theme, size);
    const all = (/** @type {Pen} */ pen) => {
      pen.rect(0, 0, size.width, size.height + NOTE, { fill: theme.paper });
      this.drawScene(pen, scene, 2);
      if (scene.placed.mode === "matrix") matrix.drawPointer(pen, view, scene.placed, state, theme);
      pen.text(note, size.width / 2, size.height + NOTE / 2, { align: "center", colour: theme.faint, size: 12 });
    };
    if (kind === "svg") {
      const pen = svgPen(size.width, size.height + NOTE, (...image) => this.toCanvas(...image).toDataURL());
      all(pen);
      return Promise.resolve(new Blob([pen.done()], { type: "image/svg+xml" }));
    }
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * size.width, 2 * (size.height + NOTE)];
    const context = contextOf(canvas);
    context.scale(2, 2);
    all(canvasPen(context, this.toCanvas));
    return new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large to be saved"))), "image/png"));
  }

  /** @param {State} state @param {Stack} stack @param {Theme} theme @param {ViewOf} viewOf */
  paintOverview(state, stack, theme, viewOf) {
    const canvas = this.parts.overview;
    if (!canvas) return;
    const room = canvas.parentElement?.clientWidth ?? 0;
    const placed = overview.layout(room, stack);
    this.overview = placed;
    this.showOverview = () => {
      const context = fresh(canvas, placed);
      context.drawImage(this.thumbnails, 0, 0, placed.width, placed.height);
      overview.drawChosen(canvasPen(context, this.toCanvas), placed, state.layer, state.head, theme);
    };
    const shared = [state.tab, room, theme.name, state.stretched];
    this.changed("thumbnails", shared, () => {
      this.thumbnails = document.createElement("canvas");
      const pen = canvasPen(fresh(this.thumbnails, placed), this.toCanvas);
      overview.drawNumbers(pen, stack, placed, theme);
      const pieces = { tab: state.tab, words: false, folded: false };
      const how = {
        viewOf: (/** @type {number} */ layer, /** @type {number} */ head) => viewOf(layer, head, pieces),
        top: (/** @type {View} */ view) => (state.stretched ? view.maximum || 1 : 1),
        ratio: devicePixelRatio,
      };
      const draw = (/** @type {number} */ layer) => overview.drawLayer(pen, stack, placed, layer, how);
      this.layerByLayer(this.thumbnails, stack.looks.length, draw);
    });
    this.changed("overview", [...shared, state.layer, state.head], () => this.showOverview());
  }

  /**
   * Draw thumbnails in between other work: the chosen head need not wait for a hundred others.
   * @param {HTMLCanvasElement} canvas
   * @param {number} layers
   * @param {(layer: number) => void} draw
   */
  layerByLayer(canvas, layers, draw, layer = 0) {
    setTimeout(() => {
      if (canvas !== this.thumbnails || layer === layers) return;
      draw(layer);
      this.showOverview();
      this.layerByLayer(canvas, layers, draw, layer + 1);
    });
  }

  /**
   * The zoom that is nearer by a factor, around a pixel or the middle.
   * @param {number} factor
   * @param {{x: number, y: number}} [at]
   * @returns {Zoom}
   */
  nearer(factor, at) {
    if (this.placed?.mode !== "matrix") return WHOLE;
    const { left, top, width, height } = this.placed;
    return zoomed(this.placed, factor, at?.x ?? left + width / 2, at?.y ?? top + height / 2);
  }

  /** The zoom and scroll that show what the keyboard points at. @param {State} state @returns {Partial<State>} */
  revealing(state) {
    const { placed } = this;
    if (!placed) return {};
    if (placed.mode === "matrix") return { zoom: revealed(placed, state.query, state.key) };
    return { scroll: lines.revealed(placed, state.query ?? state.key) };
  }

  /** Draw again only if what it depends on is new. @param {string} name @param {unknown} now @param {() => void} draw */
  changed(name, now, draw) {
    const key = JSON.stringify(now);
    if (this.drawn[name] === key) return;
    this.drawn[name] = key;
    draw();
  }

  /** @param {string} text */
  measure(text) {
    const width = this.widths.get(text) ?? this.measuring.measureText(text).width;
    this.widths.set(text, width);
    return width;
  }

  size() {
    return { width: this.parts.frame.clientWidth, height: this.parts.frame.clientHeight };
  }

  /** @returns {Theme} */
  theme() {
    const style = getComputedStyle(this.parts.frame);
    const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const [paper, ink, faint, accent, pointer] = ["paper", "ink", "faint", "accent", "pointer"].map(read);
    return { name: read("theme"), paper, ink, faint, accent, pointer };
  }
}

/** @param {State} state */
function chosen({ tab, layer, head, mode, words, folded, stretched, threshold }) {
  return [tab, layer, head, mode, words, folded, stretched, threshold];
}

/** Clear a canvas of a size in pixels of the page, sharp on every screen. @param {HTMLCanvasElement} canvas @param {Size} size */
export function fresh(canvas, { width, height }) {
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = contextOf(canvas);
  context.scale(ratio, ratio);
  return context;
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}
