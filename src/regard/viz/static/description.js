/** What is pointed at, as a sentence to read and to hear. */
import { direction } from "./renderer.js";
import { number } from "./headView.js";

/**
 * @import { Group } from "./tokenGroups.js"
 * @import { Texts } from "./i18n.js"
 * @import { Pointer } from "./state.js"
 * @import { Link, View } from "./headView.js"
 */

const MOST = 3; // links named in one sentence

/** Keep a word written from the right from turning the sentence around it. @param {string} word */
function isolated(word) {
  return direction(word) === "rtl" ? `\u2068${word}\u2069` : word;
}

/**
 * Say where a query looks, by whom a key is looked at, or how strong one link is.
 * @param {View} view
 * @param {Pointer & {locked: boolean}} pointer
 * @param {Texts} texts
 */
export function sentence(view, { query, key, locked }, texts) {
  const said = query !== null ? ofQuery(view, query, key, texts) : key !== null ? ofKey(view, key, texts) : null;
  if (said === null) return texts.idle;
  return locked ? `${said} ${texts.locked}` : said;
}

/** @param {View} view @param {number} query @param {number|null} key @param {Texts} texts */
function ofQuery(view, query, key, texts) {
  const name = isolated(view.queries[query].text);
  const parts = [];
  if (key !== null) {
    const weight = view.at(query, key);
    const other = isolated(view.keys[key].text);
    parts.push(
      weight === null
        ? texts.unknown(name, other)
        : texts.cell(name, other, number(weight, view.step)),
    );
  }
  const links = view.row(query).slice(0, MOST);
  parts.push(links.length ? texts.most(name, listed(links, view.keys, view, texts)) : texts.nowhere(name));
  const rest = view.leftOut(query);
  if (rest >= 0.005) parts.push(texts.rest(number(rest, view.step)));
  return parts.join(" ");
}

/** @param {View} view @param {number} key @param {Texts} texts */
function ofKey(view, key, texts) {
  const links = view.column(key).slice(0, MOST);
  const name = isolated(view.keys[key].text);
  return links.length ? texts.from(name, listed(links, view.queries, view, texts)) : texts.nobody(name);
}

/** @param {Link[]} links @param {Group[]} groups @param {View} view @param {Texts} texts */
function listed(links, groups, view, texts) {
  return texts.and(links.map(({ place, weight }) => texts.link(isolated(groups[place].text), number(weight, view.step))));
}
