import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { cividis, ink, pixels } from "../../../src/regard/viz/static/colourScale.js";
import { fileName } from "../../../src/regard/viz/static/download.js";
import { TEXTS } from "../../../src/regard/viz/static/i18n.js";
import * as lines from "../../../src/regard/viz/static/lines.js";
import * as matrix from "../../../src/regard/viz/static/matrix.js";
import * as overview from "../../../src/regard/viz/static/overview.js";
import { direction, svgPen } from "../../../src/regard/viz/static/renderer.js";
import * as placing from "../../../src/regard/viz/static/layout.js";
import { stacks } from "../../../src/regard/viz/static/mapGroups.js";
import { readTrace } from "../../../src/regard/viz/static/trace.js";
import { headView } from "../../../src/regard/viz/static/headView.js";

const trace = readTrace(JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url))));
const cross = stacks(trace)[2];
const view = headView(trace, cross.looks[0], 0);
const theme = { name: "light", paper: "#fff", ink: "#111", faint: "#777", accent: "#00f", pointer: "#f70" };
const how = { top: 1, threshold: 0, theme, texts: TEXTS.en, names: { queries: "target", keys: "source" } };
const size = { width: 700, height: 500 };
const whole = { scale: 1, x: 0, y: 0 };
const measure = (text) => 8 * text.length;
const place = (zoom = whole) => placing.layout(size, view, zoom, measure);

test("the colours are Python's", () => {
  assert.deepEqual([0, 0.5, 1].map(cividis), [[0, 34, 78], [125, 124, 120], [254, 232, 56]]);
  assert.deepEqual([0, 1].map((share) => ink(cividis(share))), ["#fff", "#000"]);
  assert.deepEqual([...pixels([0, 2], 1)], [0, 34, 78, 255, 254, 232, 56, 255]);
  assert.deepEqual(pixels([0.5], 2), pixels([0.25], 1));
  assert.deepEqual([...pixels([0.04], 1, 0.05)], [0, 34, 78, 255]);
});

test("each cell is found under its own middle, and words at the edges", () => {
  const placed = place();
  for (let query = 0; query < 4; query++) {
    for (let key = 0; key < 5; key++) {
      const [x, y] = [placed.left + (key + 0.5) * placed.cell, placed.top + (query + 0.5) * placed.cell];
      assert.deepEqual(placing.hit(placed, view, x, y), { query, key });
    }
  }
  assert.deepEqual(placing.hit(placed, view, placed.left - 5, placed.top + 1), { query: 0, key: null });
  assert.deepEqual(placing.hit(placed, view, placed.left + 1, placed.top - 5), { query: null, key: 0 });
  assert.equal(placing.hit(placed, view, placed.left + placed.width + 5, placed.top + 5), null);
});

test("zooming keeps the cell under the pointer, never leaves the map, and ends", () => {
  const small = { width: 300, height: 240 };
  const many = { ...view, queries: Array(90).fill(view.queries[0]), keys: Array(70).fill(view.keys[0]) };
  let placed = placing.layout(small, many, whole, measure);
  const [x, y] = [placed.left + placed.width / 2, placed.top + placed.height / 3];
  const before = placing.hit(placed, many, x, y);
  placed = placing.layout(small, many, placing.zoomed(placed, 3, x, y), measure);
  assert.ok(Math.abs(placed.zoom.scale - 3) < 1e-9);
  const near = placing.layout(small, many, placing.zoomed(placed, 9, x, y), measure);
  assert.deepEqual([placed.isUpright, near.isUpright, near.top], [false, true, placed.top]); // nothing jumps
  const after = placing.hit(placed, many, x, y);
  assert.ok(Math.abs(after.query - before.query) <= 1, `${after.query} ${before.query}`);
  assert.ok(Math.abs(after.key - before.key) <= 1, `${after.key} ${before.key}`);
  placed = placing.layout(small, many, placing.panned(placed, 1e6, 1e6), measure);
  assert.equal(Math.round(placed.zoom.x + placed.seen.across), 70);
  assert.equal(Math.round(placed.zoom.y + placed.seen.down), 90);
  for (let n = 0; n < 30; n++) placed = placing.layout(small, many, placing.zoomed(placed, 2, x, y), measure);
  assert.ok(placed.cell <= 72);
  assert.equal(placing.layout(small, many, placing.zoomed(placed, 1e-9, x, y), measure).zoom.scale, 1);
  assert.deepEqual(placing.revealed({ zoom: whole, seen: { across: 10, down: 10 } }, 30, 5), { scale: 1, x: 0, y: 21 });
});

test("a page that is hidden or tiny is drawn all the same", () => {
  for (const tiny of [{ width: 0, height: 0 }, { width: 30, height: 900 }, { width: 900, height: 30 }]) {
    const pen = svgPen(tiny.width, tiny.height);
    matrix.draw(pen, view, placing.layout(tiny, view, whole, measure), how);
    lines.draw(pen, view, lines.layout(tiny, view, 0), { ...how, pointer: { query: null, key: null } });
    assert.ok(!/NaN|Infinity|="-\d+[^"]*" height|width="-/.test(pen.done()));
  }
  assert.ok(overview.layout(0, cross).side > 0);
});

test("words are named as dense as they fit, far ones by round positions", () => {
  assert.deepEqual([60, 15, 7, 5, 1, 0.2].map(matrix.spacing), [1, 1, 3, 3, 50, 200]);
});

test("a word is found in its column, and nothing between", () => {
  const placed = lines.layout(size, view, 0);
  const y = placed.top + 1.5 * placed.row;
  assert.deepEqual(lines.hit(placed, view, placed.left - 20, y), { query: 1, key: null });
  assert.deepEqual(lines.hit(placed, view, placed.right + 20, y), { query: null, key: 1 });
  assert.equal(lines.hit(placed, view, size.width / 2, y), null);
  assert.equal(lines.hit(placed, view, placed.left - 20, placed.top + 4.5 * placed.row), null); // 4 queries
});

test("lines are those of what is pointed at, else all that are strong enough", () => {
  const placed = lines.layout(size, view, 0);
  const shown = (pointer, threshold) => lines.shownLinks(view, placed, pointer, threshold).length;
  assert.equal(shown({ query: null, key: null }, 0.5), 4);
  assert.equal(shown({ query: null, key: null }, 0), 20);
  assert.equal(shown({ query: 2, key: null }, 0), 5);
  assert.equal(shown({ query: null, key: 1 }, 0.5), 1);
  assert.equal(shown({ query: 2, key: 2 }, 0.9), 1);
});

test("a long list is scrolled as little as needed", () => {
  const many = { ...view, queries: Array(100).fill(view.queries[0]) };
  const placed = lines.layout(size, many, 1e9);
  assert.equal(placed.scroll, 100 * placed.row - placed.room);
  assert.equal(lines.revealed(lines.layout(size, many, 0), 3), 0);
  const far = lines.layout(size, many, lines.revealed(lines.layout(size, many, 0), 60));
  assert.deepEqual(lines.hit(far, many, far.left - 9, far.top + far.room - 1), { query: 60, key: null });
});

test("a head is found under its thumbnail", () => {
  const placed = overview.layout(300, cross);
  assert.deepEqual(overview.hit(placed, cross, 26 + placed.pitch + 3, 22 + 2 * placed.pitch + 3), { layer: 2, head: 1 });
  assert.equal(overview.hit(placed, cross, 26 + 2 * placed.pitch + 3, 25), null);
  assert.equal(overview.hit(placed, cross, 3, 25), null);
});

test("an SVG of the matrix holds a rectangle per cell, words as text, and gold frames", () => {
  const pen = svgPen(size.width, size.height);
  matrix.draw(pen, view, place(), how);
  matrix.drawPointer(pen, view, place(), { query: 1, key: 1 }, theme);
  const svg = pen.done();
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((found) => found[1]);
  for (const word of ["猫", "cat", "&lt;/s&gt;", "0.69"]) assert.ok(texts.includes(word), word);
  assert.equal([...svg.matchAll(/fill="none" stroke="#(000|fff)"/g)].length, 5);
  assert.equal([...svg.matchAll(/<rect[^>]*fill="rgb/g)].length, 20 + 60); // cells and the scale
  assert.ok(!svg.includes("<script"));
});

test("an SVG of the lines holds a path per line, stronger ones broader", () => {
  const pen = svgPen(size.width, size.height);
  lines.draw(pen, view, lines.layout(size, view, 0), { ...how, pointer: { query: 1, key: null } });
  const looks = pen.done().match(/<path[^>]*>/g).filter((path) => !path.includes("dasharray"));
  const widths = looks.map((path) => Number(path.match(/stroke-width="([\d.]+)"/)[1]));
  assert.equal(widths.length, 5);
  assert.equal(Math.max(...widths), widths.at(-1)); // drawn last, above the others
});

test("gold links are dashed lines, all or those of what is pointed at", () => {
  const nothing = { query: null, key: null };
  assert.deepEqual(lines.goldLinks(view, nothing).map(({ query, key }) => `${query},${key}`), [...view.gold]);
  const [one] = lines.goldLinks(view, nothing);
  for (const link of lines.goldLinks(view, { query: one.query, key: null })) assert.equal(link.query, one.query);
  assert.deepEqual(lines.goldLinks(view, one), [one]);
  const pen = svgPen(size.width, size.height);
  lines.draw(pen, view, lines.layout(size, view, 0), { ...how, pointer: nothing });
  assert.equal(pen.done().match(/stroke-dasharray/g).length, view.gold.size);
  assert.ok(pen.done().includes(TEXTS.en.goldLine));
});

test("a matrix may have a scale of its own, below zero too", () => {
  const pen = svgPen(size.width, size.height);
  const scale = {
    least: -1,
    pixels: (weights) => Uint8ClampedArray.from([...weights].flatMap((weight) => (weight < 0 ? [255, 0, 0, 255] : [0, 0, 255, 255]))),
    colour: () => [0, 0, 255],
    number: (weight) => `#${weight.toFixed(1)}`,
  };
  matrix.draw(pen, { ...view, at: () => -0.5 }, place(), { ...how, scale });
  const drawn = pen.done();
  assert.ok(drawn.includes("rgb(255,0,0)") && drawn.includes(">#-0.5<") && drawn.includes(">−1<"));
});

test("a large picture in an SVG is one image", () => {
  const pen = svgPen(10, 10, () => "data:image/png;base64,AAAA");
  pen.image(new Uint8ClampedArray(4 * 10_000), 100, 100, 0, 0, 10, 10);
  assert.match(pen.done(), /<image [^>]*href="data:image\/png;base64,AAAA"\/>/);
});

test("Arabic and Hebrew are written from the right, and stay where they belong", () => {
  assert.deepEqual(["قطة", "«שלום»", "cat", "猫", "7"].map(direction), ["rtl", "rtl", "ltr", "ltr", "ltr"]);
  const pen = svgPen(10, 10);
  pen.text("قطة", 5, 5, { align: "right", colour: "#000" });
  assert.match(pen.done(), /text-anchor="start"[^>]*direction="rtl"/); // its start is at the right
});

test("both languages say the same things", () => {
  assert.deepEqual(Object.keys(TEXTS.en), Object.keys(TEXTS.zh));
  for (const [key, text] of Object.entries(TEXTS.en)) assert.equal(typeof text, typeof TEXTS.zh[key], key);
});

test("a file is named after what it shows", () => {
  assert.equal(fileName(['a <b>/"猫"', "cross · layer 0"], "svg"), "a-b-猫-cross-layer-0.svg");
  assert.equal(fileName(["/"], "png"), "regard.png");
});
