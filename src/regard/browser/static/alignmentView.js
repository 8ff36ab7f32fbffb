/** A translation above the text that was read: a word of either shows which words of the other belong to it. */
import { createElement } from "../../viz/static/dom.js";
import { strongestLinks, weightsOf } from "./alignment.js";
import { createWordRow } from "./wordRow.js";

/**
 * @import { Alignment } from "./alignment.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Translation } from "./translator.js"
 * @import { WordRow } from "./wordRow.js"
 * @typedef {"target"|"source"} SideName
 * @typedef {{side: SideName, index: number}} Selection
 */

/** @param {Texts} texts */
export function createAlignmentView(texts) {
  let translation = /** @type {Translation|null} */ (null);
  let alignment = /** @type {Alignment|null} */ (null);
  let pinned = /** @type {Selection|null} */ (null);
  const rows = { target: createRow("target", "translation-text"), source: createRow("source", "source-text") };
  const description = createElement("p", { className: "alignment-description", role: "status" });
  const readLabel = createElement("h3", {}, texts.read);
  const element = createElement("div", { className: "alignment" }, rows.target.element, readLabel, rows.source.element, description);
  element.onkeydown = (event) => {
    if (event.key === "Escape") pin(null);
  };

  /** @param {SideName} side @param {string} className */
  function createRow(side, className) {
    const row = createWordRow(className, {
      onPoint: (index) => update(index === null ? pinned : { side, index }),
      onPin: (index) => pin(pinned?.side === side && pinned.index === index ? null : { side, index }),
    });
    row.element.setAttribute("aria-label", texts[side === "target" ? "translation" : "read"]);
    return row;
  }

  /** @param {Selection|null} selection */
  function pin(selection) {
    pinned = selection;
    update(selection);
  }

  /** @param {Selection|null} selection */
  function update(selection) {
    const weights = selection && alignment ? weightsOf(alignment, selection.side, selection.index) : [];
    for (const side of /** @type {const} */ (["target", "source"])) {
      const isOwn = selection?.side === side;
      rows[side].select(isOwn ? selection.index : null, isOwn && pinned?.side === side && pinned.index === selection.index);
      rows[side].highlight(isOwn ? [] : weights);
    }
    description.textContent = selection ? describe(selection, weights) : alignment ? texts.pointAtWord : "";
  }

  /** @param {Selection} selection @param {number[]} weights */
  function describe({ side, index }, weights) {
    const other = side === "target" ? "source" : "target";
    const links = strongestLinks(weights).map((link) => texts.link(wordOf(other, link.index), link.weight.toFixed(2)));
    const format = side === "target" ? texts.looksAt : texts.isReadFor;
    return links.length ? format(wordOf(side, index), texts.list(links)) : texts.looksAtNothing(wordOf(side, index));
  }

  /** @param {SideName} side @param {number} index */
  function wordOf(side, index) {
    const { text, words } = translation?.[side] ?? { text: "", words: [] };
    return text.slice(...(words[index] ?? [0, 0]));
  }

  return {
    element,
    /** @param {Translation} shown @param {Alignment|null} shownAlignment */
    show(shown, shownAlignment) {
      [translation, alignment, pinned] = [shown, shownAlignment, null];
      rows.target.show(shown.target);
      rows.source.show(shown.source);
      readLabel.hidden = !shown.source.text;
      update(null);
    },
  };
}
