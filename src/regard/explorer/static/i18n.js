/** Texts of the explorer by language. */
import { EN } from "./locales/en.js";
import { ZH } from "./locales/zh.js";

/**
 * @import { Language } from "../viz/i18n.js"
 * @typedef {import("./locales/en.js").Texts} Texts
 */

/** @type {Record<Language, Texts>} */
export const TEXTS = { en: EN, zh: ZH };
