/** Description of the selection in words: shown below the view and read out by screen readers. */
import { formatWeight } from "./headView.js";
import { rowRoleOf } from "./mapGroups.js";
import { textDirection } from "./renderer.js";

/**
 * @import { HeadView, Link } from "./headView.js"
 * @import { Texts } from "./locales/en.js"
 * @import { Selection, State } from "./state.js"
 * @import { TokenGroup } from "./tokenGroups.js"
 * @import { AttentionMap } from "./trace.js"
 */

const MAX_LINKS = 3;

/**
 * Say how to read a view in which nothing is selected.
 * @param {AttentionMap} map
 * @param {Pick<State, "mode"|"rows">} state
 * @param {Texts} texts
 */
export function describeView(map, { mode, rows }, texts) {
  if (mode === "image") return texts.imageHelp;
  return [texts.axes[rowRoleOf(map, rows)][mode], texts.noSelection].join(texts.sentenceSeparator);
}

/** Isolate a right-to-left word, so that it does not reorder the sentence around it. @param {string} word */
function isolate(word) {
  return textDirection(word) === "rtl" ? `\u2068${word}\u2069` : word;
}

/**
 * Describe what a query attends to, what attends to a key, or the weight of a cell.
 * @param {HeadView} view
 * @param {Selection & {locked: boolean}} selection
 * @param {Texts} texts
 */
export function describeSelection(view, { query, key, locked }, texts) {
  if (query === null && key === null) return texts.noSelection;
  const text = query !== null ? describeQuery(view, query, key, texts) : describeKey(view, key ?? 0, texts);
  return locked ? [text, texts.locked].join(texts.sentenceSeparator) : text;
}

/** @param {HeadView} view @param {number} query @param {number|null} key @param {Texts} texts */
function describeQuery(view, query, key, texts) {
  const name = isolate(view.queries[query].text);
  const sentences = [];
  if (key !== null) {
    const weight = view.at(query, key);
    const keyName = isolate(view.keys[key].text);
    sentences.push(
      weight === null ? texts.unknownWeight(name, keyName) : texts.cellWeight(name, keyName, formatWeight(weight, view.step)),
    );
  }
  const links = view.row(query).slice(0, MAX_LINKS);
  sentences.push(links.length ? texts.attendsTo(name, listLinks(links, view.keys, view, texts)) : texts.attendsToNothing(name));
  const remainder = view.remainder(query);
  if (remainder >= 0.005) sentences.push(texts.remainder(formatWeight(remainder, view.step)));
  return sentences.join(texts.sentenceSeparator);
}

/** @param {HeadView} view @param {number} key @param {Texts} texts */
function describeKey(view, key, texts) {
  const links = view.column(key).slice(0, MAX_LINKS);
  const name = isolate(view.keys[key].text);
  return links.length ? texts.attendedBy(name, listLinks(links, view.queries, view, texts)) : texts.attendedByNothing(name);
}

/** @param {Link[]} links @param {TokenGroup[]} groups @param {HeadView} view @param {Texts} texts */
function listLinks(links, groups, view, texts) {
  return texts.list(links.map(({ index, weight }) => texts.link(isolate(groups[index].text), formatWeight(weight, view.step))));
}
