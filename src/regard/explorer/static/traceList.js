/** A list of traces to choose from, by pointer or by keys. */
import { element } from "../viz/controls.js";

/** @typedef {{name: string, title: string, model: string}} About */

/**
 * A list; `choose(name)` is told each choice. Tab leads into it and out again, arrows, Home and End through it.
 * @param {string} label
 * @param {(name: string) => void} choose
 */
export function listing(label, choose) {
  const list = element("div", { className: "cards trace-list", role: "group", "aria-label": label, hidden: true });
  let cards = /** @type {HTMLButtonElement[]} */ ([]);

  list.addEventListener("keydown", (event) => {
    const place = cards.findIndex((card) => card === document.activeElement);
    const to = stepped(event.key, place, cards.length);
    if (to === null) return;
    event.preventDefault();
    cards[to].focus();
  });

  /** @param {About} about */
  function card({ name, title, model }) {
    const made = element("button", { type: "button", className: "card", onclick: () => choose(name) },
      element("span", { className: "card-text", dir: "auto" }, title || name),
      element("span", { className: "card-foot" }, [name, model].filter(Boolean).join(" · ")));
    made.dataset.name = name;
    return made;
  }

  /** Show which one is chosen; Tab leads to it, else to the first. @param {string|null} name */
  function mark(name) {
    const chosen = cards.findIndex((one) => one.dataset.name === name);
    cards.forEach((one, place) => {
      one.setAttribute("aria-pressed", String(place === chosen));
      one.tabIndex = place === Math.max(chosen, 0) ? 0 : -1;
    });
  }

  /** @param {About[]} traces */
  function fill(traces) {
    cards = traces.map(card);
    list.replaceChildren(...cards);
    list.hidden = !cards.length;
    mark(null);
  }

  return { element: list, fill, mark };
}

/**
 * Tell where a key leads from a place in a list, or null.
 * @param {string} key
 * @param {number} place
 * @param {number} count
 */
export function stepped(key, place, count) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const by = ["ArrowRight", "ArrowDown"].includes(key) ? 1 : ["ArrowLeft", "ArrowUp"].includes(key) ? -1 : 0;
  return by ? Math.min(Math.max(place + by, 0), count - 1) : null;
}
