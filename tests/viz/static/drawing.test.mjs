import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { cividis, contrastingColour, weightsToPixels } from "../../../src/regard/viz/static/colourScale.js";
import { toFileName } from "../../../src/regard/viz/static/download.js";
import { createHeadView, scaleMaximum } from "../../../src/regard/viz/static/headView.js";
import { TEXTS } from "../../../src/regard/viz/static/i18n.js";
import { layoutLines, layoutMatrix } from "../../../src/regard/viz/static/layout.js";
import { drawLines, goldLinks, visibleLines } from "../../../src/regard/viz/static/lines.js";
import { groupMaps } from "../../../src/regard/viz/static/mapGroups.js";
import { drawMatrix, drawSelection, packNotes } from "../../../src/regard/viz/static/matrix.js";
import { createSvgRenderer, textDirection } from "../../../src/regard/viz/static/renderer.js";
import { parseTrace } from "../../../src/regard/viz/static/trace.js";

const trace = parseTrace(JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url))));
const view = createHeadView(trace, groupMaps(trace)[2].maps[0], 0);
const theme = { name: "light", surface: "#fff", text: "#111", muted: "#777", accent: "#00f", highlight: "#f70" };
const measureText = (text) => 8 * text.length;
const style = { maximum: 1, threshold: 0, theme, texts: TEXTS.en, axisNames: { queries: "writing", keys: "reading" }, measureText };
const size = { width: 700, height: 500 };
const none = { query: null, key: null };
const matrixLayout = (area = size) => layoutMatrix(area, view, { scale: 1, x: 0, y: 0 }, measureText, style.axisNames);
const linesLayout = (area = size) => layoutLines(area, view, 0);

test("colours are those of Python", () => {
  assert.deepEqual([0, 0.5, 1].map(cividis), [[0, 34, 78], [125, 124, 120], [254, 232, 56]]);
  assert.deepEqual([0, 1].map((fraction) => contrastingColour(cividis(fraction))), ["#fff", "#000"]);
  assert.deepEqual([...weightsToPixels([0, 2], 1)], [0, 34, 78, 255, 254, 232, 56, 255]);
  assert.deepEqual(weightsToPixels([0.5], 2), weightsToPixels([0.25], 1));
});

test("weights below the threshold have the colour of zero", () => {
  assert.deepEqual([...weightsToPixels([0.04], 1, 0.05)], [0, 34, 78, 255]);
});

test("hidden or tiny frames are drawn without invalid numbers", () => {
  for (const tiny of [{ width: 0, height: 0 }, { width: 30, height: 900 }, { width: 900, height: 30 }]) {
    const renderer = createSvgRenderer(tiny.width, tiny.height);
    drawMatrix(renderer, view, matrixLayout(tiny), style);
    drawLines(renderer, view, linesLayout(tiny), { ...style, selection: none });
    assert.ok(!/NaN|Infinity|="-\d+[^"]*" height|width="-/.test(renderer.toSvg()));
  }
});

test("lines are those of the selection, or all above the threshold", () => {
  const count = (selection, threshold) => visibleLines(view, linesLayout(), selection, threshold).length;
  assert.equal(count(none, 0.5), 4);
  assert.equal(count(none, 0), 20);
  assert.equal(count({ query: 2, key: null }, 0), 5);
  assert.equal(count({ query: null, key: 1 }, 0.5), 1);
  assert.equal(count({ query: 2, key: 2 }, 0.9), 1);
});

test("the matrix as SVG has a rectangle per cell, labels as text, and gold outlines", () => {
  const renderer = createSvgRenderer(size.width, size.height);
  drawMatrix(renderer, view, matrixLayout(), style);
  drawSelection(renderer, view, matrixLayout(), { query: 1, key: 1 }, theme);
  const svg = renderer.toSvg();
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((match) => match[1]);
  for (const text of ["猫", "cat", "&lt;/s&gt;", "0.69", "writing ↓", "reading →"]) assert.ok(texts.includes(text), text);
  assert.equal([...svg.matchAll(/fill="none" stroke="#(000|fff)"/g)].length, 5);
  assert.equal([...svg.matchAll(/<rect[^>]*fill="rgb/g)].length, 20 + 60); // cells and colour scale
  assert.ok(!svg.includes("<script"));
});

test("the legend says when colours are scaled to the map", () => {
  const legendOf = (maximum, frameWidth = 1200) => {
    const renderer = createSvgRenderer(size.width, size.height);
    drawMatrix(renderer, view, { ...matrixLayout(), frameWidth }, { ...style, maximum });
    return renderer.toSvg();
  };
  assert.ok(!legendOf(1).includes(TEXTS.en.normalised));
  assert.ok(legendOf(0.234).includes(`>0.23 weight  ·  ${TEXTS.en.normalised}  ·  ${TEXTS.en.goldCell}<`));
  assert.ok(legendOf(0.234, 400).includes(`>${TEXTS.en.normalised}<`));
  assert.deepEqual([0, 0.3, 0.49, 0.5, 0.9].map((maximum) => scaleMaximum({ maximum })), [1, 0.3, 0.49, 1, 1]);
  assert.equal(scaleMaximum({ maximum: 0.9 }, true), 0.9);
});

test("notes of the legend share a line as long as they fit", () => {
  const notes = ["1 weight", "scaled", "outlined", "approximate"];
  for (let first = 10; first < 400; first += 10) {
    const lines = packNotes(notes, { first, others: 200, widthOf: measureText });
    assert.deepEqual(lines.flatMap((line) => line.split("  ·  ")), notes);
    lines.forEach((line, n) => assert.ok(!line.includes("·") || measureText(line) <= (n ? 200 : first), `${first}: ${line}`));
    for (let n = 1; n < lines.length; n++) {
      const longer = `${lines[n - 1]}  ·  ${lines[n].split("  ·  ")[0]}`;
      assert.ok(measureText(longer) > (n === 1 ? first : 200), `${first}: ${longer}`);
    }
  }
});

test("the legend of a matrix of one column is inside a narrow window", () => {
  const narrow = { width: 350, height: 400 };
  const column = { ...view, keys: view.keys.slice(0, 1), gold: new Set() };
  const layout = layoutMatrix(narrow, column, { scale: 1, x: 0, y: 0 }, measureText, style.axisNames);
  const renderer = createSvgRenderer(narrow.width, narrow.height);
  drawMatrix(renderer, column, layout, style);
  const [, x] = renderer.toSvg().match(/<text x="([\d.]+)"[^>]*>1 weight</);
  assert.ok(layout.left > 120 && Number(x) + 7 * "1 weight".length <= narrow.width, x);
});

test("the lines as SVG have a path per line, wider and on top if stronger", () => {
  const renderer = createSvgRenderer(size.width, size.height);
  drawLines(renderer, view, linesLayout(), { ...style, selection: { query: 1, key: null } });
  const paths = renderer.toSvg().match(/<path[^>]*>/g).filter((path) => !path.includes("dasharray"));
  const widths = paths.map((path) => Number(path.match(/stroke-width="([\d.]+)"/)[1]));
  assert.equal(widths.length, 5);
  assert.equal(Math.max(...widths), widths.at(-1)); // drawn last
});

test("gold links are dashed lines, all or those of the selection", () => {
  assert.deepEqual(goldLinks(view, none).map(({ query, key }) => `${query},${key}`), [...view.gold]);
  const [first] = goldLinks(view, none);
  for (const link of goldLinks(view, { query: first.query, key: null })) assert.equal(link.query, first.query);
  assert.deepEqual(goldLinks(view, first), [first]);
  const renderer = createSvgRenderer(size.width, size.height);
  drawLines(renderer, view, linesLayout(), { ...style, selection: none });
  assert.equal(renderer.toSvg().match(/stroke-dasharray/g).length, view.gold.size);
  assert.ok(renderer.toSvg().includes(TEXTS.en.goldLine));
});

test("a matrix accepts another colour scale, with negative values", () => {
  const renderer = createSvgRenderer(size.width, size.height);
  const scale = {
    minimum: -1,
    toPixels: (values) => Uint8ClampedArray.from([...values].flatMap((value) => (value < 0 ? [255, 0, 0, 255] : [0, 0, 255, 255]))),
    colourAt: () => [0, 0, 255],
    format: (value) => `#${value.toFixed(1)}`,
  };
  drawMatrix(renderer, { ...view, at: () => -0.5 }, matrixLayout(), { ...style, scale });
  const svg = renderer.toSvg();
  assert.ok(svg.includes("rgb(255,0,0)") && svg.includes(">#-0.5<") && svg.includes(">−1<"));
});

test("a large image in an SVG is embedded as a data URL", () => {
  const renderer = createSvgRenderer(10, 10, () => "data:image/png;base64,AAAA");
  renderer.image(new Uint8ClampedArray(4 * 10_000), 100, 100, 0, 0, 10, 10);
  assert.match(renderer.toSvg(), /<image [^>]*href="data:image\/png;base64,AAAA"\/>/);
});

test("numbers are written in cells at or above the threshold only", () => {
  const hasNumber = (threshold) => {
    const renderer = createSvgRenderer(size.width, size.height);
    drawMatrix(renderer, view, matrixLayout(), { ...style, threshold });
    return />0\.69<\/text>/.test(renderer.toSvg());
  };
  assert.deepEqual([0, 0.6, 0.7].map(hasNumber), [true, true, false]);
});

test("right-to-left text is anchored at its start", () => {
  assert.deepEqual(["قطة", "«שלום»", "cat", "猫", "7"].map(textDirection), ["rtl", "rtl", "ltr", "ltr", "ltr"]);
  const renderer = createSvgRenderer(10, 10);
  renderer.text("قطة", 5, 5, { align: "right", colour: "#000" });
  assert.match(renderer.toSvg(), /text-anchor="start"[^>]*direction="rtl"/);
});

test("file names keep letters of all scripts and nothing else", () => {
  assert.equal(toFileName(['a <b>/"猫"', "cross · layer 0"], "svg"), "a-b-猫-cross-layer-0.svg");
  assert.equal(toFileName(["/"], "png"), "regard.png");
});
