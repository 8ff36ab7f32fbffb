/** One set of strokes for the screen and for a file: a pen on a canvas, or one that writes SVG. */

/**
 * @import { Bytes } from "./scale.js"
 * @typedef {{name: string, paper: string, ink: string, faint: string, accent: string, pointer: string}} Theme
 * @typedef {(bytes: Bytes, columns: number, rows: number) => HTMLCanvasElement} ToCanvas
 * @typedef {{align?: "left"|"right"|"center", colour: string, size?: number, bold?: boolean, turn?: number,
 *   halo?: string}} Lettering
 * @typedef {{
 *   rect: (x: number, y: number, width: number, height: number,
 *     style?: {fill?: string, stroke?: string, line?: number, alpha?: number}) => void,
 *   text: (text: string, x: number, y: number, style: Lettering) => void,
 *   curve: (x0: number, y0: number, x1: number, y1: number,
 *     style: {colour: string, line: number, alpha: number, dash?: number[]}) => void,
 *   image: (bytes: Bytes, columns: number, rows: number, x: number, y: number, width: number, height: number) => void,
 *   clipped: (x: number, y: number, width: number, height: number, draw: () => void) => void,
 * }} Pen
 */

const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif';
const RIGHT_TO_LEFT = /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;

/** A text is written from the right if its first letter is Hebrew, Arabic or a kin of theirs. @param {string} text */
export function direction(text) {
  return RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr";
}

/**
 * Draw on a canvas. `toImage` makes a canvas of pixels.
 * @param {CanvasRenderingContext2D} context
 * @param {ToCanvas} toImage
 * @returns {Pen}
 */
export function canvasPen(context, toImage) {
  return {
    rect(x, y, width, height, { fill, stroke, line = 1, alpha = 1 } = {}) {
      context.globalAlpha = alpha;
      if (fill) {
        context.fillStyle = fill;
        context.fillRect(x, y, width, height);
      }
      if (stroke) {
        context.strokeStyle = stroke;
        context.lineWidth = line;
        context.strokeRect(x, y, width, height);
      }
      context.globalAlpha = 1;
    },
    text(text, x, y, { align = "left", colour, size = 13, bold = false, turn = 0, halo }) {
      context.save();
      context.translate(x, y);
      context.rotate((turn * Math.PI) / 180);
      context.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
      context.direction = direction(text);
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
    curve(x0, y0, x1, y1, { colour, line, alpha, dash = [] }) {
      const middle = (x0 + x1) / 2;
      context.setLineDash(dash);
      context.globalAlpha = alpha;
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    },
    image(bytes, columns, rows, x, y, width, height) {
      context.imageSmoothingEnabled = false;
      context.drawImage(toImage(bytes, columns, rows), x, y, width, height);
    },
    clipped(x, y, width, height, draw) {
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
 * Write SVG. `toUrl` makes a data URL of pixels; without it each pixel is a rectangle.
 * @param {number} width
 * @param {number} height
 * @param {(bytes: Bytes, columns: number, rows: number) => string} [toUrl]
 * @returns {Pen & {done: () => string}}
 */
export function svgPen(width, height, toUrl) {
  const parts = /** @type {string[]} */ ([]);
  let clips = 0;
  const shown = (/** @type {number} */ n) => String(Math.round(n * 100) / 100);
  /** @type {Pen & {done: () => string}} */
  const pen = {
    rect(x, y, w, h, { fill = "none", stroke, line = 1, alpha = 1 } = {}) {
      const edge = stroke ? ` stroke="${stroke}" stroke-width="${shown(line)}"` : "";
      const faint = alpha < 1 ? ` opacity="${shown(alpha)}"` : "";
      parts.push(
        `<rect x="${shown(x)}" y="${shown(y)}" width="${shown(w)}" height="${shown(h)}" fill="${fill}"${edge}${faint}/>`,
      );
    },
    text(text, x, y, { align = "left", colour, size = 13, bold = false, turn = 0, halo }) {
      const rtl = direction(text) === "rtl";
      // an anchor counts from where the text starts, and Arabic starts at the right
      const anchor = { center: "middle", left: rtl ? "end" : "start", right: rtl ? "start" : "end" }[align];
      const turned = turn ? ` transform="rotate(${turn} ${shown(x)} ${shown(y)})"` : "";
      const from = rtl ? ' direction="rtl"' : "";
      const weight = bold ? ' font-weight="600"' : "";
      const around = halo ? ` stroke="${halo}" stroke-width="6" stroke-linejoin="round" paint-order="stroke"` : "";
      parts.push(
        `<text x="${shown(x)}" y="${shown(y)}" dy="0.35em" text-anchor="${anchor}" font-size="${size}" fill="${colour}"${weight}${around}${from}${turned}>${escaped(text)}</text>`,
      );
    },
    curve(x0, y0, x1, y1, { colour, line, alpha, dash = [] }) {
      const middle = shown((x0 + x1) / 2);
      const dashed = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
      parts.push(
        `<path d="M${shown(x0)} ${shown(y0)}C${middle} ${shown(y0)} ${middle} ${shown(y1)} ${shown(x1)} ${shown(y1)}" fill="none" stroke="${colour}" stroke-width="${shown(line)}" opacity="${shown(alpha)}"${dashed}/>`,
      );
    },
    image(bytes, columns, rows, x, y, w, h) {
      if (toUrl && columns * rows > 4096) {
        parts.push(
          `<image x="${shown(x)}" y="${shown(y)}" width="${shown(w)}" height="${shown(h)}" preserveAspectRatio="none" image-rendering="pixelated" href="${toUrl(bytes, columns, rows)}"/>`,
        );
        return;
      }
      for (let n = 0; n < columns * rows; n++) {
        const fill = `rgb(${bytes.slice(4 * n, 4 * n + 3).join(",")})`;
        const [column, row] = [n % columns, Math.floor(n / columns)];
        pen.rect(x + (column * w) / columns, y + (row * h) / rows, w / columns, h / rows, { fill });
      }
    },
    clipped(x, y, w, h, draw) {
      const name = `clip${clips++}`;
      parts.push(
        `<clipPath id="${name}"><rect x="${shown(x)}" y="${shown(y)}" width="${shown(w)}" height="${shown(h)}"/></clipPath><g clip-path="url(#${name})">`,
      );
      draw();
      parts.push("</g>");
    },
    done() {
      return (
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(FONT)}">` +
        `${parts.join("")}</svg>\n`
      );
    },
  };
  return pen;
}

/** @param {string} text */
function escaped(text) {
  /** @type {Object<string, string>} */
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (sign) => entities[sign]);
}
