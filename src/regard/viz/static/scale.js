/** How weights become colours and numbers. */
import { cividis, pixels } from "./colourScale.js";
import { number } from "./headView.js";

/**
 * @typedef {Uint8ClampedArray<ArrayBuffer>} Bytes four of them a pixel
 * @typedef {{least: number, pixels: (weights: Float32Array, top: number, threshold?: number) => Bytes,
 *   colour: (share: number) => number[], number: (weight: number, step: number) => string}} Scale
 * Colours and numbers of weights; the least and the greatest are the ends of its shares, times the top.
 */

/** Weights from 0 to 1. @type {Scale} */
export const WEIGHTS = { least: 0, pixels, colour: cividis, number };
