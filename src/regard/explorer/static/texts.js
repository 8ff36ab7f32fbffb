/** The words of the explorer, in two languages. */
import { CHINESE } from "./chinese.js";
import { ENGLISH } from "./english.js";

export const TEXTS = { en: ENGLISH, zh: CHINESE };
