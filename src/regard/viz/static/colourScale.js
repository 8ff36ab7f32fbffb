/** Weight to colour: cividis, from dark to light, as in regard.pictures.colour. */

const SAMPLES = [
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
const TABLE = Array.from({ length: 256 }, (_, n) => cividis(n / 255));

/** Give the colour of a share of the scale, from 0 to 1. @param {number} share @returns {number[]} */
export function cividis(share) {
  const place = Math.min(Math.max(share, 0), 1) * (SAMPLES.length - 1);
  const low = Math.min(Math.floor(place), SAMPLES.length - 2);
  return SAMPLES[low].map((start, n) => Math.round(start + (SAMPLES[low + 1][n] - start) * (place - low)));
}

/** Write a colour for a style sheet. @param {number[]} colour */
export function css([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** Choose black or white, whichever is easier to read on that colour. @param {number[]} paper */
export function ink(paper) {
  const [red, green, blue] = paper.map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
}

/**
 * Colour weights: four bytes a pixel. What is below the threshold is drawn as nothing.
 * @param {Float32Array} weights
 * @param {number} top
 */
export function pixels(weights, top, threshold = 0) {
  const bytes = new Uint8ClampedArray(4 * weights.length);
  for (let n = 0; n < weights.length; n++) {
    const share = weights[n] < threshold ? 0 : weights[n] / top;
    const [red, green, blue] = TABLE[Math.min(255, Math.round(share * 255))];
    bytes[4 * n] = red;
    bytes[4 * n + 1] = green;
    bytes[4 * n + 2] = blue;
    bytes[4 * n + 3] = 255;
  }
  return bytes;
}
