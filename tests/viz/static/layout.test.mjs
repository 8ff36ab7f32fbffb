import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createHeadView } from "../../../src/regard/viz/static/headView.js";
import { hitLines, hitMatrix, isPannable, layoutLines, layoutMatrix, pan, revealCell, revealRow, zoomAt } from "../../../src/regard/viz/static/layout.js";
import { groupMaps } from "../../../src/regard/viz/static/mapGroups.js";
import { labelStep } from "../../../src/regard/viz/static/matrix.js";
import { hitOverview, layoutOverview, revealLayer } from "../../../src/regard/viz/static/overview.js";
import { parseTrace } from "../../../src/regard/viz/static/trace.js";

const axisNames = { queries: "writing", keys: "reading" };
const trace = parseTrace(JSON.parse(readFileSync(new URL("../../fixtures/trace.json", import.meta.url))));
const cross = groupMaps(trace)[2];
const view = createHeadView(trace, cross.maps[0], 0);
const size = { width: 700, height: 500 };
const unzoomed = { scale: 1, x: 0, y: 0 };
const measureText = (text) => 8 * text.length;

test("each cell is hit at its centre, and labels at the edges", () => {
  const layout = layoutMatrix(size, view, unzoomed, measureText, axisNames);
  for (let query = 0; query < 4; query++) {
    for (let key = 0; key < 5; key++) {
      const [x, y] = [layout.left + (key + 0.5) * layout.cell, layout.top + (query + 0.5) * layout.cell];
      assert.deepEqual(hitMatrix(layout, view, x, y), { query, key });
    }
  }
  assert.deepEqual(hitMatrix(layout, view, layout.left - 5, layout.top + 1), { query: 0, key: null });
  assert.deepEqual(hitMatrix(layout, view, layout.left + 1, layout.top - 5), { query: null, key: 0 });
  assert.equal(hitMatrix(layout, view, layout.left + layout.width + 5, layout.top + 5), null);
});

test("zooming keeps the cell under the pointer, stays inside the matrix, and is limited", () => {
  const small = { width: 320, height: 260 };
  const large = { ...view, queries: Array(90).fill(view.queries[0]), keys: Array(70).fill(view.keys[0]) };
  const layoutWith = (zoom) => layoutMatrix(small, large, zoom, measureText, axisNames);
  let layout = layoutWith(unzoomed);
  const [x, y] = [layout.left + layout.width / 2, layout.top + layout.height / 3];
  const before = hitMatrix(layout, large, x, y);
  layout = layoutWith(zoomAt(layout, 3, x, y));
  assert.ok(Math.abs(layout.zoom.scale - 3) < 1e-9);
  const near = layoutWith(zoomAt(layout, 9, x, y));
  assert.deepEqual([layout.hasUprightLabels, near.hasUprightLabels, near.top], [false, true, layout.top]); // nothing jumps
  const after = hitMatrix(layout, large, x, y);
  assert.ok(Math.abs(after.query - before.query) <= 1, `${after.query} ${before.query}`);
  assert.ok(Math.abs(after.key - before.key) <= 1, `${after.key} ${before.key}`);
  layout = layoutWith(pan(layout, 1e6, 1e6));
  assert.equal(Math.round(layout.zoom.x + layout.visible.columns), 70);
  assert.equal(Math.round(layout.zoom.y + layout.visible.rows), 90);
  for (let n = 0; n < 30; n++) layout = layoutWith(zoomAt(layout, 2, x, y));
  assert.ok(layout.cell <= 72);
  assert.equal(layoutWith(zoomAt(layout, 1e-9, x, y)).zoom.scale, 1);
});

test("a cell is revealed by the smallest movement", () => {
  assert.deepEqual(revealCell({ zoom: unzoomed, visible: { columns: 10, rows: 10 } }, 30, 5), { scale: 1, x: 0, y: 21 });
});

test("only a view larger than its frame is pannable", () => {
  const zoomed = layoutMatrix(size, view, { scale: 1.2, x: 0, y: 0 }, measureText, axisNames);
  assert.equal(isPannable(layoutMatrix(size, view, unzoomed, measureText, axisNames), view), false);
  assert.equal(isPannable(zoomed, view), true);
  const long = { ...view, queries: Array(100).fill(view.queries[0]) };
  assert.equal(isPannable(layoutLines(size, view, 0), view), false);
  assert.equal(isPannable(layoutLines(size, long, 0), long), true);
});

test("labels are as dense as they fit, and positions in round steps if tokens are small", () => {
  assert.deepEqual([60, 15, 7, 5, 1, 0.2].map(labelStep), [1, 1, 3, 3, 50, 200]);
});

test("a token is hit in its column, and nothing between the columns", () => {
  const layout = layoutLines(size, view, 0);
  const y = layout.top + 1.5 * layout.rowHeight;
  assert.deepEqual(hitLines(layout, view, layout.left - 20, y), { query: 1, key: null });
  assert.deepEqual(hitLines(layout, view, layout.right + 20, y), { query: null, key: 1 });
  assert.equal(hitLines(layout, view, size.width / 2, y), null);
  assert.equal(hitLines(layout, view, layout.left - 20, layout.top + 4.5 * layout.rowHeight), null); // there are 4 queries
});

test("a long list scrolls to its end, and as little as needed to reveal a row", () => {
  const long = { ...view, queries: Array(100).fill(view.queries[0]) };
  const end = layoutLines(size, long, 1e9);
  assert.equal(end.scroll, 100 * end.rowHeight - end.visibleHeight);
  const start = layoutLines(size, long, 0);
  assert.equal(revealRow(start, 3), 0);
  const revealed = layoutLines(size, long, revealRow(start, 60));
  assert.deepEqual(hitLines(revealed, long, revealed.left - 9, revealed.top + revealed.visibleHeight - 1), { query: 60, key: null });
});

test("a head is hit at its thumbnail", () => {
  const layout = layoutOverview(300, cross);
  assert.deepEqual(hitOverview(layout, cross, 26 + layout.pitch + 3, 22 + 2 * layout.pitch + 3), { layer: 2, head: 1 });
  assert.equal(hitOverview(layout, cross, 26 + 2 * layout.pitch + 3, 25), null);
  assert.equal(hitOverview(layout, cross, 3, 25), null);
  assert.ok(layoutOverview(0, cross).side > 0);
});

test("thumbnails fit into a height as well, unless they would become too small", () => {
  const deep = (layers) => ({ ...cross, maps: Array(layers).fill(cross.maps[0]) });
  assert.equal(layoutOverview(300, deep(2), 900).side, layoutOverview(300, deep(2)).side);
  for (const layers of [2, 3]) {
    const { height } = layoutOverview(300, deep(layers), 170);
    assert.ok(height <= 170 && height > 160, `${layers}: ${height}`);
  }
  const many = layoutOverview(300, deep(24), 170);
  assert.ok(many.height > 170 && many.side >= 30);
});

test("a layer is revealed by the smallest movement, the first with the indices of the heads", () => {
  const layout = layoutOverview(300, { ...cross, maps: Array(24).fill(cross.maps[0]) }, 170);
  for (const scroll of [0, 200, 700]) {
    for (let layer = 0; layer < 24; layer++) {
      const moved = revealLayer(layout, layer, { scroll, visible: 170 });
      const [top, bottom] = [layer ? 22 + layer * layout.pitch : 0, 22 + layer * layout.pitch + layout.side];
      assert.ok(moved <= top && bottom <= moved + 170, `${scroll} ${layer}`);
      if (scroll + 5 <= top && bottom + 5 <= scroll + 170) assert.equal(moved, scroll);
    }
  }
});
