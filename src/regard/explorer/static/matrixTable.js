/** Table of a matrix's numbers, one step of attention. Cells are hovered, focused with the arrow keys, and pressed. */
import { createElement } from "../viz/dom.js";

/** @type {Object<string, number[]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const MAX_ROOMY_ROWS = 6;

/**
 * @typedef {{text: string, background: string, colour?: string, isMasked?: boolean}} CellContent
 * @typedef {(row: number, column: number) => void} CellHandler
 * @typedef {{rows: string[], columns: string[], cellAt: (row: number, column: number) => CellContent, selected: number[]}} TableContent
 */

/**
 * Create a table. `onHover` is called on hover and focus, `onPress` on a click, Enter or Space.
 * @param {{title: string, hint?: string, onHover: CellHandler, onPress?: CellHandler}} options
 */
export function createMatrixTable({ title, hint = "", onHover, onPress }) {
  const table = createElement("table", { className: onPress ? "matrix-table pressable" : "matrix-table" });
  const caption = createElement("caption", {}, createElement("span", {}, title), createElement("small", {}, hint));
  let cells = /** @type {HTMLTableCellElement[][]} */ ([]);
  let labels = "";

  /**
   * @template {Event} E
   * @param {(row: number, column: number, event: E) => void} handler
   * @returns {(event: E) => void}
   */
  const withCell = (handler) => (event) => {
    const data = event.target instanceof Element && event.target.closest("td")?.dataset;
    if (data) handler(Number(data.row), Number(data.column), event);
  };
  table.addEventListener("pointerover", withCell(onHover));
  table.addEventListener("focusin", withCell(onHover));
  if (onPress) table.addEventListener("click", withCell(onPress));
  table.addEventListener("keydown", withCell((row, column, /** @type {KeyboardEvent} */ event) => {
    const arrow = ARROWS[event.key];
    if (arrow) cells[row + arrow[0]]?.[column + arrow[1]]?.focus();
    else if (onPress && (event.key === "Enter" || event.key === " ")) onPress(row, column);
    else return;
    event.preventDefault();
  }));

  /** @param {string[]} rows @param {string[]} columns */
  function build(rows, columns) {
    cells = rows.map((_, row) => columns.map((_, column) => {
      const cell = createElement("td", { tabIndex: row + column ? -1 : 0 });
      Object.assign(cell.dataset, { row: String(row), column: String(column) });
      if (onPress) cell.setAttribute("role", "button");
      return cell;
    }));
    const head = createElement("tr", {}, createElement("td"), ...columns.map((name) => createElement("th", { scope: "col" }, name)));
    const body = rows.map((name, row) => createElement("tr", {}, createElement("th", { scope: "row" }, name), ...cells[row]));
    table.classList.toggle("compact", rows.length > MAX_ROOMY_ROWS);
    table.replaceChildren(caption, createElement("thead", {}, head), createElement("tbody", {}, ...body));
  }

  /**
   * Update the cells; elements are only rebuilt if the labels change, so that focus stays.
   * @param {TableContent} content
   */
  function draw({ rows, columns, cellAt, selected }) {
    const newLabels = JSON.stringify([rows, columns]);
    if (newLabels !== labels) build(rows, columns);
    labels = newLabels;
    cells.forEach((line, row) => line.forEach((cell, column) => {
      const { text, background, colour = "", isMasked = false } = cellAt(row, column);
      if (cell.textContent !== text) cell.textContent = text;
      cell.style.background = background;
      cell.style.color = colour;
      cell.classList.toggle("masked", isMasked);
      cell.classList.toggle("selected", row === selected[0] && column === selected[1]);
      cell.classList.toggle("in-selected-row", row === selected[0] && column !== selected[1]);
      if (onPress) cell.setAttribute("aria-pressed", String(!isMasked));
    }));
  }

  return { element: createElement("div", { className: "matrix-table-scroll" }, table), draw };
}
