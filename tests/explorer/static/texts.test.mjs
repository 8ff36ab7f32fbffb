import assert from "node:assert/strict";
import { test } from "node:test";

import { splitIntoWords, uncertainty } from "../../../src/regard/explorer/static/confidence.js";
import { formatFactor, formatNumber, formatPercent, formatSubscript, formatVector } from "../../../src/regard/explorer/static/format.js";
import { TEXTS } from "../../../src/regard/explorer/static/i18n.js";

test("both locales have the same texts, of the same types and arities", () => {
  const signature = (texts, path = "") => Object.entries(texts).flatMap(([name, text]) => {
    if (typeof text === "object" && !Array.isArray(text)) return signature(text, `${path}${name}.`);
    return [`${path}${name} ${typeof text === "string" ? "string" : `${typeof text} ${text.length}`}`];
  });
  assert.deepEqual(signature(TEXTS.zh), signature(TEXTS.en));
});

test("a translation is split into words and the text between, and nothing is lost", () => {
  const text = "L'homme dort, où ?";
  const words = ["L'", "homme", "dort", ",", "où", "?"].map((word, n) => ({ text: word, probability: n / 10 }));
  const parts = splitIntoWords(text, words);
  assert.equal(parts.map((part) => part.text).join(""), text);
  assert.deepEqual(parts.filter(({ probability }) => probability !== null).map((part) => part.text), words.map((word) => word.text));
  assert.deepEqual(splitIntoWords("猫坐", [{ text: "狗", probability: 1 }]), [{ text: "猫坐", probability: null }]);
  assert.deepEqual(splitIntoWords("a a", [{ text: "a", probability: 0.1 }, { text: "a", probability: 0.9 }]).map((part) => part.probability), [0.1, null, 0.9]);
});

test("uncertainty is 0 for probable words, and grows as they become less probable", () => {
  assert.equal(uncertainty(0.9), 0);
  const values = [0.8, 0.6, 0.3, 0.05, 0].map(uncertainty);
  assert.deepEqual([...values].sort((a, b) => a - b), values);
  assert.equal(values.at(-1), 1);
});

test("numbers have a true minus sign and no negative zero", () => {
  assert.deepEqual([1.234, -0.5, -0.001, null, -Infinity].map((value) => formatNumber(value)), ["1.23", "−0.50", "0.00", "−∞", "−∞"]);
  assert.deepEqual([formatFactor(-1), formatFactor(1), formatVector([1, -2], 0), formatSubscript(12)], ["(−1.00)", "1.00", "(1, −2)", "₁₂"]);
});

test("percentages are 0 or 100 only if they are exact", () => {
  assert.deepEqual([0, 0.001, 0.5, 0.999, 1].map(formatPercent), ["0", "<1", "50", ">99", "100"].map((number) => `${number}\u00a0%`));
});
