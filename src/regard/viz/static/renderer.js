/** Renderers: one drawing interface for the screen (canvas) and for saved files (SVG). */

/**
 * @import { Rgba } from "./colourScale.js"
 * @typedef {{name: string, surface: string, text: string, muted: string, accent: string, highlight: string}} Theme
 * @typedef {{align?: "left"|"right"|"center", colour: string, size?: number, bold?: boolean, rotate?: number,
 *   halo?: string}} TextStyle `rotate` in degrees; `halo` is the colour of an outline
 * @typedef {{
 *   rect: (x: number, y: number, width: number, height: number,
 *     style?: {fill?: string, stroke?: string, lineWidth?: number, alpha?: number}) => void,
 *   text: (text: string, x: number, y: number, style: TextStyle) => void,
 *   curve: (x0: number, y0: number, x1: number, y1: number,
 *     style: {colour: string, lineWidth: number, alpha: number, dash?: number[]}) => void,
 *   image: (pixels: Rgba, columns: number, rows: number, x: number, y: number, width: number, height: number) => void,
 *   clip: (x: number, y: number, width: number, height: number, draw: () => void) => void,
 * }} Renderer
 */

const FONT_FAMILY = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif';
const FIRST_LETTER_IS_RTL = /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;
const MAX_SVG_RECTS = 4096; // an image with more pixels is embedded as PNG

/**
 * Return the direction of a text by its first letter: Hebrew, Arabic and related scripts run right to left.
 * @param {string} text
 */
export function textDirection(text) {
  return FIRST_LETTER_IS_RTL.test(text) ? "rtl" : "ltr";
}

/** Return a canvas that holds RGBA pixels. @param {Rgba} pixels @param {number} columns @param {number} rows */
export function pixelsToCanvas(pixels, columns, rows) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  canvas.getContext("2d")?.putImageData(new ImageData(pixels, columns, rows), 0, 0);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas */
export function get2dContext(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * Resize and clear a canvas, in CSS pixels but sharp on every screen.
 * @param {HTMLCanvasElement} canvas
 * @param {{width: number, height: number}} size
 */
export function resetCanvas(canvas, { width, height }) {
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = get2dContext(canvas);
  context.scale(ratio, ratio);
  return context;
}

/** Create a renderer that draws on a canvas. @param {CanvasRenderingContext2D} context @returns {Renderer} */
export function createCanvasRenderer(context) {
  return {
    rect(x, y, width, height, { fill, stroke, lineWidth = 1, alpha = 1 } = {}) {
      context.globalAlpha = alpha;
      if (fill) {
        context.fillStyle = fill;
        context.fillRect(x, y, width, height);
      }
      if (stroke) {
        context.strokeStyle = stroke;
        context.lineWidth = lineWidth;
        context.strokeRect(x, y, width, height);
      }
      context.globalAlpha = 1;
    },
    text(text, x, y, { align = "left", colour, size = 13, bold = false, rotate = 0, halo }) {
      context.save();
      context.translate(x, y);
      context.rotate((rotate * Math.PI) / 180);
      context.font = `${bold ? "600 " : ""}${size}px ${FONT_FAMILY}`;
      context.direction = textDirection(text);
      context.textAlign = align;
      context.textBaseline = "middle";
      if (halo) {
        [context.strokeStyle, context.lineWidth, context.lineJoin] = [halo, 6, "round"];
        context.strokeText(text, 0, 0);
      }
      context.fillStyle = colour;
      context.fillText(text, 0, 0);
      context.restore();
    },
    curve(x0, y0, x1, y1, { colour, lineWidth, alpha, dash = [] }) {
      const middle = (x0 + x1) / 2;
      context.setLineDash(dash);
      context.globalAlpha = alpha;
      context.strokeStyle = colour;
      context.lineWidth = lineWidth;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    },
    image(pixels, columns, rows, x, y, width, height) {
      context.imageSmoothingEnabled = false;
      context.drawImage(pixelsToCanvas(pixels, columns, rows), x, y, width, height);
    },
    clip(x, y, width, height, draw) {
      context.save();
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      draw();
      context.restore();
    },
  };
}

/**
 * Create a renderer that writes SVG. Images are rectangles, or, if large, data URLs made by `toDataUrl`.
 * @param {number} width
 * @param {number} height
 * @param {(pixels: Rgba, columns: number, rows: number) => string} [toDataUrl]
 * @returns {Renderer & {toSvg: () => string}}
 */
export function createSvgRenderer(width, height, toDataUrl) {
  const parts = /** @type {string[]} */ ([]);
  let clipCount = 0;
  const round = (/** @type {number} */ n) => String(Math.round(n * 100) / 100);
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  const box = (x, y, w, h) => `x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}"`;
  /** @type {Renderer & {toSvg: () => string}} */
  const renderer = {
    rect(x, y, w, h, { fill = "none", stroke, lineWidth = 1, alpha = 1 } = {}) {
      const outline = stroke ? ` stroke="${stroke}" stroke-width="${round(lineWidth)}"` : "";
      const opacity = alpha < 1 ? ` opacity="${round(alpha)}"` : "";
      parts.push(`<rect ${box(x, y, w, h)} fill="${fill}"${outline}${opacity}/>`);
    },
    text(text, x, y, { align = "left", colour, size = 13, bold = false, rotate = 0, halo }) {
      const isRtl = textDirection(text) === "rtl";
      // anchors are relative to the start of the text, which is at the right in Arabic
      const anchor = { center: "middle", left: isRtl ? "end" : "start", right: isRtl ? "start" : "end" }[align];
      const transform = rotate ? ` transform="rotate(${rotate} ${round(x)} ${round(y)})"` : "";
      const direction = isRtl ? ' direction="rtl"' : "";
      const weight = bold ? ' font-weight="600"' : "";
      const outline = halo ? ` stroke="${halo}" stroke-width="6" stroke-linejoin="round" paint-order="stroke"` : "";
      parts.push(
        `<text x="${round(x)}" y="${round(y)}" dy="0.35em" text-anchor="${anchor}" font-size="${size}" fill="${colour}"${weight}${outline}${direction}${transform}>${escapeXml(text)}</text>`,
      );
    },
    curve(x0, y0, x1, y1, { colour, lineWidth, alpha, dash = [] }) {
      const middle = round((x0 + x1) / 2);
      const path = `M${round(x0)} ${round(y0)}C${middle} ${round(y0)} ${middle} ${round(y1)} ${round(x1)} ${round(y1)}`;
      const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
      parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="${round(lineWidth)}" opacity="${round(alpha)}"${dashes}/>`);
    },
    image(pixels, columns, rows, x, y, w, h) {
      if (toDataUrl && columns * rows > MAX_SVG_RECTS) {
        const url = toDataUrl(pixels, columns, rows);
        parts.push(`<image ${box(x, y, w, h)} preserveAspectRatio="none" image-rendering="pixelated" href="${url}"/>`);
        return;
      }
      for (let n = 0; n < columns * rows; n++) {
        const fill = `rgb(${pixels.slice(4 * n, 4 * n + 3).join(",")})`;
        const [column, row] = [n % columns, Math.floor(n / columns)];
        renderer.rect(x + (column * w) / columns, y + (row * h) / rows, w / columns, h / rows, { fill });
      }
    },
    clip(x, y, w, h, draw) {
      const id = `clip${clipCount++}`;
      parts.push(`<clipPath id="${id}"><rect ${box(x, y, w, h)}/></clipPath><g clip-path="url(#${id})">`);
      draw();
      parts.push("</g>");
    },
    toSvg() {
      return (
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escapeXml(FONT_FAMILY)}">` +
        `${parts.join("")}</svg>\n`
      );
    },
  };
  return renderer;
}

/** @param {string} text */
function escapeXml(text) {
  /** @type {Object<string, string>} */
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => entities[character]);
}
