/** List of traces to choose from, by pointer or keyboard. */
import { createElement } from "../viz/dom.js";

/** @typedef {{name: string, title: string, model: string}} TraceInfo */

/**
 * Create a list with a roving tab stop: Tab enters and leaves it, arrow keys, Home and End move within it.
 * @param {string} label
 * @param {(name: string) => void} onSelect
 */
export function createTraceList(label, onSelect) {
  const list = createElement("div", { className: "cards trace-list", role: "group", "aria-label": label, hidden: true });
  let cards = /** @type {HTMLButtonElement[]} */ ([]);

  list.addEventListener("keydown", (event) => {
    const index = nextIndex(event.key, cards.findIndex((card) => card === document.activeElement), cards.length);
    if (index === null) return;
    event.preventDefault();
    cards[index].focus();
  });

  /** @param {TraceInfo} info */
  function createCard({ name, title, model }) {
    const card = createElement("button", { type: "button", className: "card", onclick: () => onSelect(name) },
      createElement("span", { className: "card-text", dir: "auto" }, title || name),
      createElement("span", { className: "card-footer" }, [title ? name : "", model].filter(Boolean).join(" · ")));
    card.dataset.name = name;
    return card;
  }

  /** Mark the selected trace, which becomes the tab stop; without one the first is. @param {string|null} name */
  function select(name) {
    const selected = cards.findIndex((card) => card.dataset.name === name);
    cards.forEach((card, index) => {
      card.setAttribute("aria-pressed", String(index === selected));
      card.tabIndex = index === Math.max(selected, 0) ? 0 : -1;
    });
  }

  /** @param {TraceInfo[]} traces */
  function setTraces(traces) {
    cards = traces.map(createCard);
    list.replaceChildren(...cards);
    list.hidden = !cards.length;
    select(null);
  }

  return { element: list, setTraces, select };
}

/**
 * Return the index that a key leads to in a list, or null.
 * @param {string} key
 * @param {number} index
 * @param {number} count
 */
export function nextIndex(key, index, count) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const by = ["ArrowRight", "ArrowDown"].includes(key) ? 1 : ["ArrowLeft", "ArrowUp"].includes(key) ? -1 : 0;
  return by ? Math.min(Math.max(index + by, 0), count - 1) : null;
}
