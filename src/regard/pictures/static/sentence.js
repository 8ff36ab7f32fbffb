/** What is pointed at, as a sentence to read and to hear. */
import { direction } from "./pen.js";
import { number } from "./view.js";

const MOST = 3; // links named in one sentence

/** Keep a word written from the right from turning the sentence around it. */
function isolated(word) {
  return direction(word) === "rtl" ? `\u2068${word}\u2069` : word;
}

/** Say where a query looks, by whom a key is looked at, or how strong one link is. */
export function sentence(view, { query, key, locked }, texts) {
  if (query === null && key === null) return texts.idle;
  const said = query === null ? ofKey(view, key, texts) : ofQuery(view, query, key, texts);
  return locked ? `${said} ${texts.locked}` : said;
}

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

function ofKey(view, key, texts) {
  const links = view.column(key).slice(0, MOST);
  const name = isolated(view.keys[key].text);
  return links.length ? texts.from(name, listed(links, view.queries, view, texts)) : texts.nobody(name);
}

function listed(links, groups, view, texts) {
  return texts.and(links.map(({ place, weight }) => texts.link(isolated(groups[place].text), number(weight, view.step))));
}
