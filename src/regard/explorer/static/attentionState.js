/** What the playground holds: some words, their vectors, and how they look at each other. */
import { number, whole } from "./urlState.js";

/**
 * @typedef {[number, number]} Pair
 * @typedef {{words: string[], queries: Pair[], keys: Pair[], values: Pair[], score: string, bandwidth: number,
 *   temperature: number, positions: string, mask: string, size: number, lengths: number, cells: boolean[][]}} Scene
 * @typedef {"queries"|"keys"|"values"} Side
 * @typedef {"en"|"zh"} Language
 */

export const MOST = 8; // words
export const REACH = 2; // a plane shows vectors from -REACH to REACH
export const TEMPERATURES = [0.1, 4];
export const BANDWIDTHS = [0.1, 3];

const WORDS = {
  en: ["kitten", "train", "horse", "pebble", "cat"],
  zh: ["小猫", "火车", "马", "石子", "猫"],
};
/** To the right what is alive, upwards what moves. @type {Pair[]} */
const PLACES = [[1.6, 0.2], [-0.9, 1.5], [0.8, 1.6], [-1.2, -0.9], [1.5, 1], [0.4, -1.4], [-1.5, 0.4], [1.3, -0.9]];

/** The first thing to see. @param {Language} language @returns {Scene} */
export function firstScene(language) {
  const words = WORDS[language];
  const vectors = () => words.map((_, n) => /** @type {Pair} */ ([...PLACES[n]]));
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
    size: 1,
    lengths: 3,
    cells: words.map(() => words.map(() => true)),
  };
}

/** Take the words of a text, between commas or spaces. @param {string} text */
export function wordsOf(text) {
  return text.split(/[\s,，、;]+/u).filter(Boolean).slice(0, MOST).map((word) => [...word].slice(0, 16).join(""));
}

/**
 * Use other words: those that stay in their place keep their vectors, new ones get a free place.
 * @param {Scene} scene
 * @param {string[]} words
 * @returns {Scene}
 */
export function withWords(scene, words) {
  const vectors = (/** @type {Pair[]} */ old) => words.map((_, n) => old[n] ?? /** @type {Pair} */ ([...PLACES[n % PLACES.length]]));
  return {
    ...scene,
    words,
    queries: vectors(scene.queries),
    keys: vectors(scene.keys),
    values: vectors(scene.values),
    lengths: Math.min(scene.lengths, words.length),
    cells: words.map((_, i) => words.map((_, j) => scene.cells[i]?.[j] ?? true)),
  };
}

/**
 * Move one vector, within what the plane shows and to hundredths.
 * @param {Scene} scene
 * @param {Side} side
 * @param {number} place
 * @param {number[]} to
 * @returns {Scene}
 */
export function moved(scene, side, place, [x, y]) {
  const round = (/** @type {number} */ value) => Math.round(100 * Math.min(Math.max(value, -REACH), REACH)) / 100;
  const vectors = scene[side].map((vector, n) => (n === place ? [round(x), round(y)] : vector));
  return { ...scene, [side]: vectors };
}

/**
 * Let a query look at a key or not; whatever the mask was, it is now one of single cells.
 * @param {Scene} scene
 * @param {boolean[][]} allowed
 * @param {number} query
 * @param {number} key
 * @returns {Scene}
 */
export function toggled(scene, allowed, query, key) {
  const cells = allowed.map((row, i) => row.map((may, j) => (i === query && j === key ? !may : may)));
  return { ...scene, mask: "cells", cells };
}

/** What the server is asked for a scene. @param {Scene} scene */
export function request(scene) {
  const { queries, keys, values, score, bandwidth, temperature, positions } = scene;
  /** @type {Object<string, {kind: string, size?: number, lengths?: number[], cells?: boolean[][]}>} */
  const masks = {
    window: { kind: "window", size: scene.size },
    lengths: { kind: "lengths", lengths: [scene.lengths] },
    cells: { kind: "cells", cells: scene.cells },
  };
  const mask = masks[scene.mask] ?? { kind: scene.mask };
  return { queries, keys, values, score, bandwidth, temperature, positions, mask };
}

const written = (/** @type {Pair[]} */ vectors) => vectors.map((vector) => vector.join()).join(";");

/** Tell a scene in an address; what is as at first is left out. @param {Scene} scene @param {Language} language */
export function toValues(scene, language) {
  const first = firstScene(language);
  const unless = (/** @type {string} */ now, /** @type {string} */ before) => (now === before ? "" : now);
  const simple = (/** @type {keyof Scene} */ name) => unless(String(scene[name]), String(first[name]));
  return {
    words: simple("words"),
    q: unless(written(scene.queries), written(first.queries)),
    k: unless(written(scene.keys), written(first.keys)),
    v: unless(written(scene.values), written(first.values)),
    score: simple("score"),
    width: simple("bandwidth"),
    t: simple("temperature"),
    positions: simple("positions"),
    mask: simple("mask"),
    size: scene.mask === "window" ? scene.size : "",
    length: scene.mask === "lengths" ? scene.lengths : "",
    cells: scene.mask === "cells" ? scene.cells.map((row) => row.map(Number).join("")).join(";") : "",
  };
}

/**
 * Read a scene from an address; what does not fit is as at first.
 * @param {Object<string, string>} values
 * @param {Language} language
 * @param {Object<string, string[]>} known
 * @returns {Scene}
 */
export function fromValues(values, language, known) {
  const words = wordsOf(values.words ?? "");
  const scene = withWords(firstScene(language), words.length ? words : WORDS[language]);
  const count = scene.words.length;
  /** @param {string[]} list @param {string} name @param {string} otherwise */
  const named = (list, name, otherwise) => (list.includes(name) ? name : otherwise);
  return {
    ...scene,
    queries: pairs(values.q, count) ?? scene.queries,
    keys: pairs(values.k, count) ?? scene.keys,
    values: pairs(values.v, count) ?? scene.values,
    score: named(known.scores, values.score, scene.score),
    bandwidth: number(values.width, 1, BANDWIDTHS),
    temperature: number(values.t, 1, TEMPERATURES),
    positions: named(known.positions, values.positions, "none"),
    mask: named(known.masks, values.mask, "none"),
    size: Math.min(whole(values.size) ?? 1, MOST),
    lengths: Math.min(whole(values.length) ?? scene.lengths, count),
    cells: cells(values.cells, count) ?? scene.cells,
  };
}

/**
 * Read vectors of two numbers, as many as wanted.
 * @param {string|undefined} text
 * @param {number|null} count
 * @returns {Pair[]|null}
 */
export function pairs(text, count = null) {
  const rows = (text ?? "").split(";").map((row) => row.split(",").map((part) => (part.trim() ? Number(part) : NaN)));
  const fits = rows.every((row) => row.length === 2 && row.every((value) => Math.abs(value) <= 1000));
  return fits && (count === null || rows.length === count) ? /** @type {Pair[]} */ (rows) : null;
}

/** @param {string|undefined} text @param {number} count */
function cells(text, count) {
  const rows = (text ?? "").split(";");
  const fits = rows.length === count && rows.every((row) => row.length === count && /^[01]+$/.test(row));
  return fits ? rows.map((row) => [...row].map((sign) => sign === "1")) : null;
}
