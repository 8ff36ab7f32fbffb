/** Colour scale of attention weights: cividis, from dark to light, as in regard.viz.colour. */
import { formatWeight } from "./headView.js";

/**
 * @typedef {Uint8ClampedArray<ArrayBuffer>} Rgba four bytes per pixel
 * @typedef {{minimum: number, toPixels: (values: Float32Array, maximum: number, threshold?: number) => Rgba,
 *   colourAt: (fraction: number) => number[], format: (value: number, step: number) => string}} ColourScale
 * How values become colours and labels. Fractions run from `minimum` (0 or -1) to 1; a value is its fraction times the
 * maximum of the scale.
 */

const CIVIDIS_SAMPLES = [
  [0, 34, 78],
  [26, 56, 111],
  [67, 78, 108],
  [97, 101, 111],
  [125, 124, 120],
  [155, 148, 118],
  [188, 174, 108],
  [222, 201, 88],
  [254, 232, 56],
];
const CIVIDIS_TABLE = Array.from({ length: 256 }, (_, n) => cividis(n / 255));

/**
 * Return the cividis colour (red, green, blue) of a fraction from 0 to 1.
 * @param {number} fraction
 * @returns {number[]}
 */
export function cividis(fraction) {
  const position = Math.min(Math.max(fraction, 0), 1) * (CIVIDIS_SAMPLES.length - 1);
  const low = Math.min(Math.floor(position), CIVIDIS_SAMPLES.length - 2);
  return CIVIDIS_SAMPLES[low].map((start, n) => Math.round(start + (CIVIDIS_SAMPLES[low + 1][n] - start) * (position - low)));
}

/** Format a colour for CSS. @param {number[]} colour */
export function toCssColour([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** Return black or white, whichever has the higher contrast (WCAG) on a background. @param {number[]} background */
export function contrastingColour(background) {
  const [red, green, blue] = background.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
}

/**
 * Colour weights as RGBA pixels. Weights below the threshold get the colour of zero.
 * @param {Float32Array} weights
 * @param {number} maximum
 */
export function weightsToPixels(weights, maximum, threshold = 0) {
  const bytes = new Uint8ClampedArray(4 * weights.length);
  for (let n = 0; n < weights.length; n++) {
    const fraction = weights[n] < threshold ? 0 : weights[n] / maximum;
    const [red, green, blue] = CIVIDIS_TABLE[Math.min(255, Math.round(fraction * 255))];
    bytes[4 * n] = red;
    bytes[4 * n + 1] = green;
    bytes[4 * n + 2] = blue;
    bytes[4 * n + 3] = 255;
  }
  return bytes;
}

/** Scale of attention weights, from 0 to 1. @type {ColourScale} */
export const WEIGHT_SCALE = { minimum: 0, toPixels: weightsToPixels, colourAt: cividis, format: formatWeight };
