/** Texts of the translator page by language. */
import { EN } from "./locales/en.js";
import { ZH } from "./locales/zh.js";

/**
 * @import { Language } from "../../viz/static/i18n.js"
 * @import { Texts } from "./locales/en.js"
 */

/** @type {Record<Language, Texts>} */
export const TEXTS = { en: EN, zh: ZH };
