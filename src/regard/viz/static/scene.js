/** Scene: the canvases of a viewer. Each is redrawn only when something it depends on has changed. */
import { scaleMaximum } from "./headView.js";
import { drawImageOverlay, layoutImage } from "./imageOverlay.js";
import { isPannable, layoutLines, layoutMatrix, revealCell, revealRow, zoomAt } from "./layout.js";
import { drawLines } from "./lines.js";
import { axisNamesOf } from "./mapGroups.js";
import { drawMatrix, drawSelection } from "./matrix.js";
import { drawIndices, drawThumbnails, layoutOverview, outlineHead, revealLayer } from "./overview.js";
import { createCanvasRenderer, createSvgRenderer, get2dContext, pixelsToCanvas, resetCanvas } from "./renderer.js";
import { UNZOOMED } from "./state.js";

/**
 * @import { HeadView } from "./headView.js"
 * @import { Size, ViewLayout } from "./layout.js"
 * @import { Texts } from "./locales/en.js"
 * @import { MapGroup } from "./mapGroups.js"
 * @import { OverviewLayout } from "./overview.js"
 * @import { Renderer, Theme } from "./renderer.js"
 * @import { State, Zoom } from "./state.js"
 * @import { PatchImage } from "./trace.js"
 * @typedef {Pick<State, "tab"|"rows"|"mergeSubwords"|"collapseSpecial">} ViewOptions
 * @typedef {(layer: number, head: number, options?: ViewOptions) => HeadView} ViewOf
 * @typedef {{state: State, groups: MapGroup[], texts: Texts, view: HeadView}} SceneInput
 * @typedef {ReturnType<Scene["compose"]>} Composition
 */

const CAPTION_HEIGHT = 30; // pixels below a saved image
const SAVED_PIXEL_RATIO = 2;

export class Scene {
  /**
   * @param {{frame: HTMLElement, canvas: HTMLCanvasElement, overlay: HTMLCanvasElement, overview?: HTMLCanvasElement}} elements
   * @param {Object<string, PatchImage>} [images] by token list
   */
  constructor(elements, images = {}) {
    this.elements = elements;
    this.images = images;
    this.textWidths = /** @type {Map<string, number>} */ (new Map());
    this.dependencies = /** @type {Object<string, string>} */ ({});
    this.layout = /** @type {ViewLayout|null} */ (null);
    this.overviewLayout = /** @type {OverviewLayout|null} */ (null);
    this.thumbnails = document.createElement("canvas");
    this.showOverview = () => {};
    this.isPrinting = false;
    this.measuringContext = get2dContext(document.createElement("canvas"));
    this.measuringContext.font = "13px system-ui, sans-serif";
  }

  /** Draw everything that has changed. @param {SceneInput & {viewOf: ViewOf}} input */
  draw({ state, groups, texts, view, viewOf }) {
    const theme = this.readTheme();
    this.drawOverview(state, groups[state.tab], theme, viewOf);
    const size = this.size();
    const composition = this.compose(state, groups, texts, view, theme, size);
    const { layout } = composition;
    const position = layout.mode === "matrix" ? [layout.zoom] : [state.query, state.key, state.scroll, state.opacity];
    this.redrawIfChanged("canvas", [viewSettings(state), position, size, theme.name, texts.weight], () => {
      const context = resetCanvas(this.elements.canvas, size);
      this.render(createCanvasRenderer(context), composition, devicePixelRatio);
    });
    this.layout = layout;
    this.elements.frame.style.setProperty("--frame-aspect", `${size.width} / ${size.height}`); // printed, it is scaled
    this.elements.canvas.classList.toggle("is-pannable", isPannable(layout, view)); // else touch scrolls the page
    const overlay = createCanvasRenderer(resetCanvas(this.elements.overlay, size));
    if (layout.mode === "matrix") drawSelection(overlay, view, layout, state, theme);
  }

  /**
   * Collect what drawing a view needs.
   * @param {State} state
   * @param {MapGroup[]} groups
   * @param {Texts} texts
   * @param {HeadView} view
   * @param {Theme} theme
   * @param {Size} size
   */
  compose(state, groups, texts, view, theme, size) {
    const map = groups[state.tab].maps[state.layer];
    const axisNames = axisNamesOf(map, texts, state.rows);
    const maximum = scaleMaximum(view, state.autoScale);
    const image = this.images[map.keys];
    const measureText = (/** @type {string} */ text) => this.measureText(text);
    /** @type {ViewLayout} */
    const layout =
      state.mode === "image" && image
        ? layoutImage(size, view, image, map.queries === map.keys)
        : state.mode !== "lines"
        ? layoutMatrix(size, view, state.zoom, measureText, axisNames)
        : layoutLines(size, view, state.scroll);
    return { view, layout, maximum, threshold: state.threshold, opacity: state.opacity, theme, texts, axisNames, measureText, selection: state };
  }

  /** @param {Renderer} renderer @param {Composition} composition @param {number} pixelRatio */
  render(renderer, composition, pixelRatio) {
    const { view, layout, ...style } = composition;
    if (layout.mode === "image") drawImageOverlay(renderer, view, layout, style);
    else if (layout.mode === "matrix") drawMatrix(renderer, view, layout, { ...style, pixelRatio });
    else drawLines(renderer, view, layout, style);
  }

  /**
   * Render the current view to a file.
   * @param {"png"|"svg"} format
   * @param {SceneInput & {caption: string}} input
   * @returns {Promise<Blob>}
   */
  save(format, { state, groups, texts, view, caption }) {
    const size = this.size();
    const theme = this.readTheme();
    const composition = this.compose(state, groups, texts, view, theme, size);
    const { layout } = composition;
    const renderAll = (/** @type {Renderer} */ renderer) => {
      renderer.rect(0, 0, size.width, size.height + CAPTION_HEIGHT, { fill: theme.surface });
      this.render(renderer, composition, SAVED_PIXEL_RATIO);
      if (layout.mode === "matrix") drawSelection(renderer, view, layout, state, theme);
      const style = /** @type {const} */ ({ align: "center", colour: theme.muted, size: 12 });
      renderer.text(caption, size.width / 2, size.height + CAPTION_HEIGHT / 2, style);
    };
    if (format === "svg") {
      const renderer = createSvgRenderer(size.width, size.height + CAPTION_HEIGHT, (...image) => pixelsToCanvas(...image).toDataURL());
      renderAll(renderer);
      return Promise.resolve(new Blob([renderer.toSvg()], { type: "image/svg+xml" }));
    }
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SAVED_PIXEL_RATIO * size.width, SAVED_PIXEL_RATIO * (size.height + CAPTION_HEIGHT)];
    const context = get2dContext(canvas);
    context.scale(SAVED_PIXEL_RATIO, SAVED_PIXEL_RATIO);
    renderAll(createCanvasRenderer(context));
    return new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the image is too large to be saved"))), "image/png"));
  }

  /** @param {State} state @param {MapGroup} group @param {Theme} theme @param {ViewOf} viewOf */
  drawOverview(state, group, theme, viewOf) {
    const canvas = this.elements.overview;
    if (!canvas) return;
    const { availableWidth, availableHeight } = this.overviewSize();
    const layout = layoutOverview(availableWidth, group, availableHeight);
    this.overviewLayout = layout;
    this.showOverview = () => {
      const context = resetCanvas(canvas, layout);
      context.drawImage(this.thumbnails, 0, 0, layout.width, layout.height);
      outlineHead(createCanvasRenderer(context), layout, state.layer, state.head, theme);
    };
    const dependencies = [state.tab, layout, theme.name, state.autoScale];
    this.redrawIfChanged("thumbnails", dependencies, () => {
      this.thumbnails = document.createElement("canvas");
      const renderer = createCanvasRenderer(resetCanvas(this.thumbnails, layout));
      drawIndices(renderer, group, layout, theme);
      const ungrouped = /** @type {const} */ ({ tab: state.tab, rows: "output", mergeSubwords: false, collapseSpecial: false });
      const options = {
        viewOf: (/** @type {number} */ layer, /** @type {number} */ head) => viewOf(layer, head, ungrouped),
        maximumOf: (/** @type {HeadView} */ view) => scaleMaximum(view, state.autoScale),
        pixelRatio: devicePixelRatio,
      };
      const drawLayer = (/** @type {number} */ layer) => drawThumbnails(renderer, group, layout, layer, options);
      this.drawLayersInBackground(this.thumbnails, group.maps.length, drawLayer);
    });
    this.redrawIfChanged("overview", [...dependencies, state.layer, state.head], () => {
      this.showOverview();
      const frame = canvas.parentElement;
      if (frame) frame.scrollTop = revealLayer(layout, state.layer, { scroll: frame.scrollTop, visible: frame.clientHeight });
    });
  }

  /** Return the space for the thumbnails; their frame has a maximum height where the page decides its height. */
  overviewSize() {
    const frame = this.elements.overview?.parentElement;
    if (!frame) return { availableWidth: 0, availableHeight: Infinity };
    const maxHeight = parseFloat(getComputedStyle(frame).maxHeight);
    return { availableWidth: frame.clientWidth, availableHeight: Number.isNaN(maxHeight) ? frame.clientHeight : maxHeight };
  }

  /**
   * Draw the thumbnails layer by layer between other tasks, so that the selected head need not wait for all others.
   * @param {HTMLCanvasElement} canvas
   * @param {number} layers
   * @param {(layer: number) => void} drawLayer
   */
  drawLayersInBackground(canvas, layers, drawLayer, layer = 0) {
    if (this.isPrinting) {
      for (let n = 0; n < layers; n++) drawLayer(n);
      return;
    }
    setTimeout(() => {
      if (canvas !== this.thumbnails || layer === layers) return;
      drawLayer(layer);
      this.showOverview();
      this.drawLayersInBackground(canvas, layers, drawLayer, layer + 1);
    });
  }

  /**
   * Return the zoom scaled by a factor around a pixel, or around the centre.
   * @param {number} factor
   * @param {{x: number, y: number}} [at]
   * @returns {Zoom}
   */
  zoomBy(factor, at) {
    if (this.layout?.mode !== "matrix") return UNZOOMED;
    const { left, top, width, height } = this.layout;
    return zoomAt(this.layout, factor, at?.x ?? left + width / 2, at?.y ?? top + height / 2);
  }

  /**
   * Return the zoom or scroll offset that brings the selection into view.
   * @param {State} state
   * @returns {Partial<State>}
   */
  revealSelection(state) {
    const { layout } = this;
    if (!layout) return {};
    if (layout.mode === "image") return {};
    if (layout.mode === "matrix") return { zoom: revealCell(layout, state.query, state.key) };
    return { scroll: revealRow(layout, state.query ?? state.key) };
  }

  /** @param {string} name @param {unknown} dependencies @param {() => void} draw */
  redrawIfChanged(name, dependencies, draw) {
    const key = JSON.stringify(dependencies);
    if (this.dependencies[name] === key) return;
    this.dependencies[name] = key;
    draw();
  }

  /** @param {string} text */
  measureText(text) {
    const width = this.textWidths.get(text) ?? this.measuringContext.measureText(text).width;
    this.textWidths.set(text, width);
    return width;
  }

  size() {
    return { width: this.elements.frame.clientWidth, height: this.elements.frame.clientHeight };
  }

  /** Read the theme's colours from the style sheet. @returns {Theme} */
  readTheme() {
    const style = getComputedStyle(this.elements.frame);
    const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const [name, surface, text, muted, accent, highlight] = ["theme", "surface", "text", "muted", "accent", "highlight"].map(read);
    return { name, surface, text, muted, accent, highlight };
  }
}

/** @param {State} state */
function viewSettings({ tab, layer, head, mode, rows, mergeSubwords, collapseSpecial, autoScale, threshold }) {
  return [tab, layer, head, mode, rows, mergeSubwords, collapseSpecial, autoScale, threshold];
}
