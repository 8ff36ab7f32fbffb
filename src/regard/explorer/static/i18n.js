/** The words of the explorer, in two languages. */
import { CHINESE } from "./locales/zh.js";
import { ENGLISH } from "./locales/en.js";

/** @typedef {import("./locales/en.js").Texts} Texts */

/** @type {{en: Texts, zh: Texts}} */
export const TEXTS = { en: ENGLISH, zh: CHINESE };
