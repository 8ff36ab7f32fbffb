/** A small grid of numbers, one step of attention: pointed at, walked through and pressed. */
import { element } from "../viz/controls.js";

/** @type {Object<string, number[]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * @typedef {{text: string, back: string, ink?: string, className?: string}} Cell
 * @typedef {(row: number, column: number) => void} Told
 * @typedef {{rows: string[], columns: string[], cell: (row: number, column: number) => Cell, pointed: number[]}} Drawn
 */

/**
 * A grid under a title. `point(row, column)` tells of pointer and focus, `press` of a click, Enter or Space.
 * @param {{title: string, hint?: string, point: Told, press?: Told}} what
 */
export function grid({ title, hint = "", point, press }) {
  const table = element("table", { className: press ? "grid pressable" : "grid" });
  const caption = element("caption", {}, element("span", {}, title), element("small", {}, hint));
  let cells = /** @type {HTMLTableCellElement[][]} */ ([]);
  let drawn = "";

  /** @template {Event} E @param {(row: number, column: number, event: E) => void} act @returns {(event: E) => void} */
  const tell = (act) => (event) => {
    const place = event.target instanceof Element && event.target.closest("td")?.dataset;
    if (place) act(Number(place.row), Number(place.column), event);
  };
  table.addEventListener("pointerover", tell(point));
  table.addEventListener("focusin", tell(point));
  if (press) table.addEventListener("click", tell(press));
  table.addEventListener("keydown", tell((row, column, /** @type {KeyboardEvent} */ event) => {
    const arrow = ARROWS[event.key];
    if (arrow) cells[row + arrow[0]]?.[column + arrow[1]]?.focus();
    else if (press && (event.key === "Enter" || event.key === " ")) press(row, column);
    else return;
    event.preventDefault();
  }));

  /** @param {string[]} rows @param {string[]} columns */
  function build(rows, columns) {
    cells = rows.map((_, row) => columns.map((_, column) => {
      const cell = element("td", { tabIndex: row + column ? -1 : 0 });
      Object.assign(cell.dataset, { row: String(row), column: String(column) });
      if (press) cell.setAttribute("role", "button");
      return cell;
    }));
    const head = element("tr", {}, element("td"), ...columns.map((name) => element("th", { scope: "col" }, name)));
    const body = rows.map((name, row) => element("tr", {}, element("th", { scope: "row" }, name), ...cells[row]));
    table.classList.toggle("many", rows.length > 6);
    table.replaceChildren(caption, element("thead", {}, head), element("tbody", {}, ...body));
  }

  /** Draw the grid; `cell(row, column)` tells each of its cells. @param {Drawn} what */
  function draw({ rows, columns, cell, pointed }) {
    const names = JSON.stringify([rows, columns]);
    if (names !== drawn) build(rows, columns);
    drawn = names;
    cells.forEach((line, row) => line.forEach((made, column) => {
      const { text, back, ink = "", className = "" } = cell(row, column);
      if (made.textContent !== text) made.textContent = text;
      made.style.background = back;
      made.style.color = ink;
      made.className = [className, mark(row, column, pointed)].filter(Boolean).join(" ");
      if (press) made.setAttribute("aria-pressed", String(className !== "hidden"));
    }));
  }

  return { element: element("div", { className: "grid-box" }, table), draw };
}

/** @param {number} row @param {number} column @param {number[]} pointed */
function mark(row, column, pointed) {
  if (row !== pointed[0]) return "";
  return column === pointed[1] ? "pointed" : "in-row";
}
