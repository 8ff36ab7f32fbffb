/** Texts of the viewer by language. */
import { EN } from "./locales/en.js";
import { ZH } from "./locales/zh.js";

/**
 * @typedef {"en"|"zh"} Language
 * @import { Texts } from "./locales/en.js"
 */

/** @type {Record<Language, Texts>} */
export const TEXTS = { en: EN, zh: ZH };

/**
 * Return the supported language for a language tag such as "zh-CN": Chinese, or else English.
 * @param {string|null|undefined} tag
 * @returns {Language}
 */
export function resolveLanguage(tag) {
  return /^zh\b/i.test(tag ?? "") ? "zh" : "en";
}
