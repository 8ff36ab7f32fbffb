/** State of the attention playground: words, their vectors, score, mask and positional encoding; with its URL form. */
import { parseIndex, parseNumber } from "./urlState.js";

/**
 * @import { Language } from "../viz/i18n.js"
 * @import { Params } from "./urlState.js"
 * @typedef {[number, number]} Vector
 * @typedef {{words: string[], queries: Vector[], keys: Vector[], values: Vector[], score: string, bandwidth: number,
 *   temperature: number, positions: string, mask: string, windowSize: number, length: number, cells: boolean[][]}} AttentionState
 * `windowSize`, `length` and `cells` belong to the masks "window", "lengths" and "cells".
 * @typedef {"queries"|"keys"|"values"} VectorKind
 */

export const MAX_WORDS = 8;
const MAX_WORD_LENGTH = 16;
export const MAX_COORDINATE = 2; // coordinates run from -MAX_COORDINATE to MAX_COORDINATE
export const TEMPERATURE_RANGE = [0.1, 4];
export const BANDWIDTH_RANGE = [0.1, 3];

const DEFAULT_WORDS = {
  en: ["kitten", "train", "horse", "pebble", "cat"],
  zh: ["小猫", "火车", "马", "石子", "猫"],
};
/** Of the default words, living things are at the right and moving things at the top. @type {Vector[]} */
const DEFAULT_VECTORS = [[1.6, 0.2], [-0.9, 1.5], [0.8, 1.6], [-1.2, -0.9], [1.5, 1], [0.4, -1.4], [-1.5, 0.4], [1.3, -0.9]];

/** @param {Language} language @returns {AttentionState} */
export function defaultState(language) {
  const words = DEFAULT_WORDS[language];
  const vectors = () => words.map((_, n) => /** @type {Vector} */ ([...DEFAULT_VECTORS[n]]));
  return {
    words: [...words],
    queries: vectors(),
    keys: vectors(),
    values: vectors(),
    score: "scaled_dot",
    bandwidth: 1,
    temperature: 1,
    positions: "none",
    mask: "none",
    windowSize: 1,
    length: 3,
    cells: words.map(() => words.map(() => true)),
  };
}

/** Split a text into words at spaces and commas. @param {string} text */
export function parseWords(text) {
  const words = text.split(/[\s,，、;]+/u).filter(Boolean).slice(0, MAX_WORDS);
  return words.map((word) => [...word].slice(0, MAX_WORD_LENGTH).join(""));
}

/**
 * Replace the words. The vectors stay; additional words get default vectors.
 * @param {AttentionState} state
 * @param {string[]} words
 * @returns {AttentionState}
 */
export function setWords(state, words) {
  const resize = (/** @type {Vector[]} */ vectors) =>
    words.map((_, n) => vectors[n] ?? /** @type {Vector} */ ([...DEFAULT_VECTORS[n % DEFAULT_VECTORS.length]]));
  return {
    ...state,
    words,
    queries: resize(state.queries),
    keys: resize(state.keys),
    values: resize(state.values),
    length: Math.min(state.length, words.length),
    cells: words.map((_, i) => words.map((_, j) => state.cells[i]?.[j] ?? true)),
  };
}

/**
 * Move a vector, clamped to the plane and rounded to hundredths.
 * @param {AttentionState} state
 * @param {VectorKind} kind
 * @param {number} index
 * @param {number[]} to
 * @returns {AttentionState}
 */
export function moveVector(state, kind, index, [x, y]) {
  const round = (/** @type {number} */ value) => Math.round(100 * Math.min(Math.max(value, -MAX_COORDINATE), MAX_COORDINATE)) / 100;
  const vectors = state[kind].map((vector, n) => (n === index ? [round(x), round(y)] : vector));
  return { ...state, [kind]: vectors };
}

/**
 * Toggle one cell of the current mask, which becomes a custom one.
 * @param {AttentionState} state
 * @param {boolean[][]} mask
 * @param {number} query
 * @param {number} key
 * @returns {AttentionState}
 */
export function toggleCell(state, mask, query, key) {
  const cells = mask.map((row, i) => row.map((isVisible, j) => (i === query && j === key ? !isVisible : isVisible)));
  return { ...state, mask: "cells", cells };
}

/** Return the body of the request to /api/attend. @param {AttentionState} state */
export function toRequest(state) {
  const { queries, keys, values, score, bandwidth, temperature, positions } = state;
  /** @type {Object<string, {kind: string, size?: number, lengths?: number[], cells?: boolean[][]}>} */
  const masks = {
    window: { kind: "window", size: state.windowSize },
    lengths: { kind: "lengths", lengths: [state.length] },
    cells: { kind: "cells", cells: state.cells },
  };
  const mask = masks[state.mask] ?? { kind: state.mask };
  return { queries, keys, values, score, bandwidth, temperature, positions, mask };
}

const formatVectors = (/** @type {Vector[]} */ vectors) => vectors.map((vector) => vector.join()).join(";");

/**
 * Return the URL parameters of a state; defaults are empty.
 * @param {AttentionState} state
 * @param {Language} language
 */
export function toParams(state, language) {
  const defaults = defaultState(language);
  const unlessDefault = (/** @type {string} */ value, /** @type {string} */ byDefault) => (value === byDefault ? "" : value);
  const plain = (/** @type {keyof AttentionState} */ name) => unlessDefault(String(state[name]), String(defaults[name]));
  const vectors = (/** @type {VectorKind} */ kind) => unlessDefault(formatVectors(state[kind]), formatVectors(defaults[kind]));
  return {
    words: plain("words"),
    q: vectors("queries"),
    k: vectors("keys"),
    v: vectors("values"),
    score: plain("score"),
    bandwidth: plain("bandwidth"),
    temperature: plain("temperature"),
    positions: plain("positions"),
    mask: plain("mask"),
    window: state.mask === "window" ? state.windowSize : "",
    length: state.mask === "lengths" ? state.length : "",
    cells: state.mask === "cells" ? state.cells.map((row) => row.map(Number).join("")).join(";") : "",
  };
}

/**
 * Parse a state from URL parameters; invalid ones become defaults.
 * @param {Params} params
 * @param {Language} language
 * @param {Object<string, string[]>} known names of scores, masks and positional encodings
 * @returns {AttentionState}
 */
export function fromParams(params, language, known) {
  const words = parseWords(params.words ?? "");
  const state = setWords(defaultState(language), words.length ? words : DEFAULT_WORDS[language]);
  const count = state.words.length;
  /** @param {string[]} names @param {string} name @param {string} fallback */
  const oneOf = (names, name, fallback) => (names.includes(name) ? name : fallback);
  return {
    ...state,
    queries: parseVectors(params.q, count) ?? state.queries,
    keys: parseVectors(params.k, count) ?? state.keys,
    values: parseVectors(params.v, count) ?? state.values,
    score: oneOf(known.scores, params.score, state.score),
    bandwidth: parseNumber(params.bandwidth, 1, BANDWIDTH_RANGE),
    temperature: parseNumber(params.temperature, 1, TEMPERATURE_RANGE),
    positions: oneOf(known.positions, params.positions, "none"),
    mask: oneOf(known.masks, params.mask, "none"),
    windowSize: Math.min(parseIndex(params.window) ?? 1, MAX_WORDS),
    length: Math.min(parseIndex(params.length) ?? state.length, count),
    cells: parseCells(params.cells, count) ?? state.cells,
  };
}

/**
 * Parse vectors such as "1,2;0.5,-1", or return null.
 * @param {string|undefined} text
 * @param {number|null} count
 * @returns {Vector[]|null}
 */
export function parseVectors(text, count = null) {
  const rows = (text ?? "").split(";").map((row) => row.split(",").map((part) => (part.trim() ? Number(part) : NaN)));
  const isValid = rows.every((row) => row.length === 2 && row.every((value) => Math.abs(value) <= 1000));
  return isValid && (count === null || rows.length === count) ? /** @type {Vector[]} */ (rows) : null;
}

/** Parse a mask such as "10;11", or return null. @param {string|undefined} text @param {number} count */
function parseCells(text, count) {
  const rows = (text ?? "").split(";");
  const isValid = rows.length === count && rows.every((row) => row.length === count && /^[01]+$/.test(row));
  return isValid ? rows.map((row) => [...row].map((digit) => digit === "1")) : null;
}
