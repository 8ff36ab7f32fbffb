/** What is drawn where, and drawn anew only when it changed. */
import * as lines from "./links.js";
import * as matrix from "./matrix.js";
import * as overview from "./overview.js";
import { canvasPen, svgPen } from "./pen.js";

const NOTE = 30; // pixels below a saved picture, for its caption

export class Painter {
  constructor(parts, toCanvas) {
    this.parts = parts;
    this.toCanvas = toCanvas;
    this.widths = new Map();
    this.drawn = {};
    this.measuring = document.createElement("canvas").getContext("2d");
    this.measuring.font = "13px system-ui, sans-serif";
  }

  /** Draw all that changed. */
  paint({ state, stacks, texts, view, viewOf }) {
    const theme = this.theme();
    this.paintOverview(state, stacks[state.tab], theme, viewOf);
    const size = this.size();
    const scene = this.scene(state, stacks, texts, view, theme, size);
    const seen = state.mode === "lines" ? [state.query, state.key, state.scroll] : [scene.placed.zoom];
    this.changed("stage", [chosen(state), seen, size, theme.name, texts.weight], () => {
      const context = fresh(this.parts.stage, size);
      this.drawScene(canvasPen(context, this.toCanvas), scene, devicePixelRatio);
    });
    this.placed = scene.placed;
    const over = fresh(this.parts.overlay, size);
    if (state.mode === "matrix") matrix.drawPointer(canvasPen(over), view, scene.placed, state, theme);
  }

  /** Gather what a drawing of the stage needs. */
  scene(state, stacks, texts, view, theme, size) {
    const look = stacks[state.tab].looks[state.layer];
    const names = { queries: `${look.queries} · ${texts.queries}`, keys: `${look.keys} · ${texts.keys}` };
    const top = state.stretched ? view.maximum || 1 : 1;
    const placed =
      state.mode === "matrix"
        ? matrix.layout(size, view, state.zoom, (text) => this.measure(text))
        : lines.layout(size, view, state.scroll);
    return { mode: state.mode, view, placed, top, threshold: state.threshold, theme, texts, names, pointer: state };
  }

  drawScene(pen, scene, ratio) {
    const { mode, view, placed, ...how } = scene;
    if (mode === "matrix") matrix.draw(pen, view, placed, { ...how, ratio });
    else lines.draw(pen, view, placed, how);
  }

  /** Make a file of the current view. @returns {Promise<Blob>} */
  save(kind, { state, stacks, texts, view, note }) {
    const size = this.size();
    const theme = this.theme();
    const scene = this.scene(state, stacks, texts, view, theme, size);
    const all = (pen) => {
      pen.rect(0, 0, size.width, size.height + NOTE, { fill: theme.paper });
      this.drawScene(pen, scene, 2);
      if (state.mode === "matrix") matrix.drawPointer(pen, view, scene.placed, state, theme);
      pen.text(note, size.width / 2, size.height + NOTE / 2, { align: "center", colour: theme.faint, size: 12 });
    };
    if (kind === "svg") {
      const pen = svgPen(size.width, size.height + NOTE, (...image) => this.toCanvas(...image).toDataURL());
      all(pen);
      return Promise.resolve(new Blob([pen.done()], { type: "image/svg+xml" }));
    }
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * size.width, 2 * (size.height + NOTE)];
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    all(canvasPen(context, this.toCanvas));
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  paintOverview(state, stack, theme, viewOf) {
    const room = this.parts.overview.parentElement.clientWidth;
    const placed = overview.layout(room, stack);
    this.overview = placed;
    this.showOverview = () => {
      const context = fresh(this.parts.overview, placed);
      context.drawImage(this.thumbnails, 0, 0, placed.width, placed.height);
      overview.drawChosen(canvasPen(context), placed, state.layer, state.head, theme);
    };
    const shared = [state.tab, room, theme.name, state.stretched];
    this.changed("thumbnails", shared, () => {
      this.thumbnails = document.createElement("canvas");
      const pen = canvasPen(fresh(this.thumbnails, placed), this.toCanvas);
      overview.drawNumbers(pen, stack, placed, theme);
      const pieces = { tab: state.tab, words: false, folded: false };
      const how = {
        viewOf: (layer, head) => viewOf(layer, head, pieces),
        top: (view) => (state.stretched ? view.maximum || 1 : 1),
        ratio: devicePixelRatio,
      };
      const draw = (layer) => overview.drawLayer(pen, stack, placed, layer, how);
      this.layerByLayer(this.thumbnails, stack.looks.length, draw);
    });
    this.changed("overview", [...shared, state.layer, state.head], () => this.showOverview());
  }

  /** Draw thumbnails in between other work: the chosen head need not wait for a hundred others. */
  layerByLayer(canvas, layers, draw, layer = 0) {
    setTimeout(() => {
      if (canvas !== this.thumbnails || layer === layers) return;
      draw(layer);
      this.showOverview();
      this.layerByLayer(canvas, layers, draw, layer + 1);
    });
  }

  /** The zoom that is nearer by a factor, around a pixel or the middle. */
  nearer(factor, at) {
    const { left, top, width, height } = this.placed;
    return matrix.zoomed(this.placed, factor, at?.x ?? left + width / 2, at?.y ?? top + height / 2);
  }

  /** The zoom and scroll that show what the keyboard points at. */
  revealing(view, state) {
    if (state.mode === "matrix") return { zoom: matrix.revealed(this.placed, state.query, state.key) };
    return { scroll: lines.revealed(this.placed, state.query ?? state.key) };
  }

  /** Draw again only if what it depends on is new. */
  changed(name, now, draw) {
    const key = JSON.stringify(now);
    if (this.drawn[name] === key) return;
    this.drawn[name] = key;
    draw();
  }

  measure(text) {
    if (!this.widths.has(text)) this.widths.set(text, this.measuring.measureText(text).width);
    return this.widths.get(text);
  }

  size() {
    return { width: this.parts.frame.clientWidth, height: this.parts.frame.clientHeight };
  }

  theme() {
    const style = getComputedStyle(this.parts.frame);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ["paper", "ink", "faint", "accent", "pointer"];
    return { name: read("theme"), ...Object.fromEntries(names.map((name) => [name, read(name)])) };
  }
}

function chosen({ tab, layer, head, mode, words, folded, stretched, threshold }) {
  return [tab, layer, head, mode, words, folded, stretched, threshold];
}

/** Clear a canvas of a size in pixels of the page, sharp on every screen. */
export function fresh(canvas, { width, height }) {
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}
