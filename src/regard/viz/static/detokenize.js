/** Pieces as a reader wants them: bytes told as whole characters, marks of a space left out. */

/** Stands for a piece that only continues the character of the piece before. */
export const GOES_ON = "…";

const LETTERS = byteLetters();
/** @type {Object<string, string>} */
const SPELLED = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** GPT-2's letters for bytes: printable ones are themselves, the others follow U+0100. */
function byteLetters() {
  const letters = /** @type {Map<string, number>} */ (new Map());
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable =
      (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || (byte > 173 && byte < 256);
    letters.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  return letters;
}

/**
 * Tell each piece as text, as regard.pictures.pieces does.
 * @param {string[]} pieces
 * @param {number[]} special
 * @returns {string[]}
 */
export function readable(pieces, special = []) {
  const kept = new Set(special);
  const bytes = isByteLevel(pieces, kept) ? spell : unescape;
  const parts = pieces.map((piece, n) => (kept.has(n) ? [] : bytes(piece)));
  return told(parts).map((text, n) => (kept.has(n) ? pieces[n] : withoutSpace(text)));
}

/** Spell out signs that steer: controls, and marks that turn the text around. @param {string} text */
export function safe(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (sign) => {
    if ("\u200c\u200d".includes(sign)) return sign;
    const code = (sign.codePointAt(0) ?? 0).toString(16);
    return SPELLED[sign] ?? (code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`);
  });
}

/** @param {string[]} pieces @param {Set<number>} kept */
function isByteLevel(pieces, kept) {
  let shifted = false;
  for (const [n, piece] of pieces.entries()) {
    if (kept.has(n)) continue;
    for (const letter of piece) {
      if (!LETTERS.has(letter)) return false;
      shifted ||= letter >= "\u0100";
    }
  }
  return shifted;
}

/** @param {string} piece */
function spell(piece) {
  return [...piece].map((letter) => LETTERS.get(letter) ?? 0);
}

/** @param {string} piece */
function unescape(piece) {
  const parts = piece.split(/<0x([0-9A-Fa-f]{2})>/); // text and numbers by turns
  return parts.flatMap((part, n) => (n % 2 ? [parseInt(part, 16)] : [...new TextEncoder().encode(part)]));
}

/** Decode the bytes of all pieces together; a character goes to the first piece it is in. @param {number[][]} parts */
function told(parts) {
  const owners = parts.flatMap((part, n) => part.map(() => n));
  const bytes = Uint8Array.from(parts.flat());
  const texts = parts.map(() => "");
  for (let place = 0; place < bytes.length; ) {
    const length = characterLength(bytes[place]);
    const character = decoded(bytes.subarray(place, place + length));
    texts[owners[place]] += character ?? "\ufffd";
    place += character === null ? 1 : length;
  }
  return texts.map((text, n) => text || (parts[n].length ? GOES_ON : ""));
}

/** @param {number} lead */
function characterLength(lead) {
  if (lead < 0x80) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** @param {Uint8Array} bytes */
function decoded(bytes) {
  if (bytes.length === 1 && bytes[0] < 0x80) return String.fromCharCode(bytes[0]);
  try {
    return UTF8.decode(bytes);
  } catch {
    return null;
  }
}

/** @param {string} text */
function withoutSpace(text) {
  return text.replace(/^[▁ ]+|[▁ ]+$/gu, "") || (text ? "▁" : "");
}
