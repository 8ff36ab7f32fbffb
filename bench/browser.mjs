// Translates the texts of a JSON file with the page's modules; prints tokens and milliseconds of CPU time as JSON. See browser.py.
import { readFileSync } from "node:fs";

import { Translator } from "../src/regard/browser/static/translator.js";

const { record, parameters, texts, beamSize } = JSON.parse(readFileSync(process.argv[2]));
const translator = new Translator(record, parameters);
const tokens = [];
const milliseconds = [];
for (const text of texts) {
  const before = process.cpuUsage();
  const translation = await translator.translate(text, { beamSize });
  const { user, system } = process.cpuUsage(before);
  milliseconds.push((user + system) / 1000);
  tokens.push(translation.tokens);
}
console.log(JSON.stringify({ tokens, milliseconds }));
