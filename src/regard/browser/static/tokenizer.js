/** Tokenizer: text to token ids and back, as words, characters or BPE pieces. The twin of regard.data.Tokenizer. */

/**
 * @typedef {{kind: "bpe"|"words"|"characters", pieces: string[], merges: [string, string][]}} TokenizerRecord
 * @typedef {[start: number, end: number]} Span of characters of a text, the end exclusive
 */

export const PAD = 0;
export const BOS = 1;
export const EOS = 2;
export const SPECIAL_TOKENS = ["<padding>", "<start>", "<end>", "<unknown>"];
const BYTE_TOKENS = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const FIRST_BYTE = SPECIAL_TOKENS.length;
const FIRST_PIECE = FIRST_BYTE + BYTE_TOKENS.length;

// As in regard.data.tokenizer. Browsers may know characters that Unicode has assigned since, and take them for letters.
const WORD_PATTERN =
  / ?\p{Script=Han}| ?(?:(?!\p{Script=Han})[\p{L}\p{M}])+| ?\p{N}| ?[^\p{White_Space}\p{L}\p{M}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}/gu;
const PYTHON_SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const LEADING_SPACE = new RegExp(`^${PYTHON_SPACE}`, "u");
const OUTER_SPACE = new RegExp(`^${PYTHON_SPACE}|${PYTHON_SPACE}$`, "gu");
const UTF8 = new TextEncoder();

/** Remove the white space that Python's `str.strip` removes. @param {string} text */
export function strip(text) {
  return text.replace(OUTER_SPACE, "");
}

/** Remove the white space that Python's `str.lstrip` removes. @param {string} text */
export function stripStart(text) {
  return text.replace(LEADING_SPACE, "");
}

/** Split a text into words with the space before them, punctuation and white space. @param {string} text @returns {string[]} */
export function splitWords(text) {
  return replaceSurrogates(text).match(WORD_PATTERN) ?? [];
}

/** Replace lone surrogates, which UTF-8 cannot encode, by question marks. @param {string} text */
export function replaceSurrogates(text) {
  return text.replace(/\p{Surrogate}/gu, "?");
}

export class Tokenizer {
  /** @param {TokenizerRecord} record */
  constructor({ kind, pieces, merges }) {
    this.kind = kind;
    this.tokens = [...SPECIAL_TOKENS, ...BYTE_TOKENS, ...pieces];
    this.ids = new Map(pieces.map((piece, n) => [piece, FIRST_PIECE + n]));
    this.merges = /** @type {Map<string, {rank: number, id: number}>} */ (new Map());
    merges.forEach(([left, right], rank) => {
      this.merges.set(pairKey(this.idOf(left), this.idOf(right)), { rank, id: this.idOf(left + right) });
    });
  }

  /** Return the id of a piece. @param {string} piece */
  idOf(piece) {
    return this.ids.get(piece) ?? -1;
  }

  /** Return the token ids of a text, without BOS and EOS. @param {string} text @returns {number[]} */
  encode(text) {
    if (!text) return [];
    const prepared = ` ${replaceSurrogates(text)}`;
    const words = this.kind === "characters" ? [...prepared] : splitWords(prepared);
    return words.flatMap((word) => (this.kind === "bpe" ? this.mergePieces(word) : this.encodeWord(word)));
  }

  /** Return the id of a word if it is a piece, or else those of its characters. @param {string} word */
  encodeWord(word) {
    const id = this.ids.get(word);
    return id === undefined ? [...word].flatMap((character) => this.encodeCharacter(character)) : [id];
  }

  /** Return the id of a character, or else those of its bytes. @param {string} character */
  encodeCharacter(character) {
    const id = this.ids.get(character);
    return id === undefined ? [...UTF8.encode(character)].map((byte) => FIRST_BYTE + byte) : [id];
  }

  /** Merge the characters of a word, always the pair that was learned first, from the left. @param {string} word */
  mergePieces(word) {
    const ids = [...word].flatMap((character) => this.encodeCharacter(character));
    for (;;) {
      let best = /** @type {{rank: number, id: number}|null} */ (null);
      let at = -1;
      for (let n = 0; n + 1 < ids.length; n++) {
        const merge = this.merges.get(pairKey(ids[n], ids[n + 1]));
        if (merge && (!best || merge.rank < best.rank)) [best, at] = [merge, n];
      }
      if (!best) return ids;
      ids.splice(at, 2, best.id);
    }
  }

  /** Return the text of some tokens, without special tokens; invalid bytes become U+FFFD. @param {number[]} ids */
  decode(ids) {
    const text = decodeUtf8(ids.flatMap((id) => this.bytesOf(id)));
    return text.startsWith(" ") ? text.slice(1) : text;
  }

  /** Return the UTF-8 of a token. @param {number} id @returns {number[]} */
  bytesOf(id) {
    if (id < FIRST_BYTE) return [];
    return id < FIRST_PIECE ? [id - FIRST_BYTE] : [...UTF8.encode(this.tokens[id])];
  }

  /**
   * Return the span of each token in the decoded text. Tokens that are bytes of one character all cover that character.
   * @param {number[]} ids
   * @returns {Span[]}
   */
  offsets(ids) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const bytes = /** @type {number[]} */ ([]);
    let text = "";
    const spans = ids.map((id) => {
      const start = text.length;
      const added = this.bytesOf(id);
      bytes.push(...added);
      text += decoder.decode(Uint8Array.from(added), { stream: true });
      const isPartial = decodeUtf8(bytes).length > text.length; // within a character of several bytes
      return /** @type {Span} */ ([start, text.length + Number(isPartial)]);
    });
    const prefix = text.startsWith(" ") ? 1 : 0; // the space that was put before the text
    return spans.map(([start, end]) => [Math.max(start - prefix, 0), Math.max(end - prefix, 0)]);
  }
}

/** @param {number[]} bytes */
function decodeUtf8(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** @param {number} left @param {number} right */
function pairKey(left, right) {
  return `${left} ${right}`;
}
