/** The words of the explorer, in two languages. */
import { CHINESE } from "./chinese.js";
import { ENGLISH } from "./english.js";

/** @typedef {import("./english.js").Texts} Texts */

/** @type {{en: Texts, zh: Texts}} */
export const TEXTS = { en: ENGLISH, zh: CHINESE };
