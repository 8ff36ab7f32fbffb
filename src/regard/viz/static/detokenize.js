/** Display form of tokens: bytes decoded to characters, space markers removed. The twin of regard.viz.detokenize. */

/** Shown for a piece that only continues the character of the piece before it. */
export const CONTINUATION = "…";

const BYTE_LETTERS = byteLetters();
/** @type {Object<string, string>} */
const ESCAPES = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** GPT-2's byte alphabet: printable bytes stand for themselves, the others for letters from U+0100 on. */
function byteLetters() {
  const letters = /** @type {Map<string, number>} */ (new Map());
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || (byte > 173 && byte < 256);
    letters.set(String.fromCharCode(isPrintable ? byte : next++), byte);
  }
  return letters;
}

/**
 * Return each piece as readable text; special tokens stay as they are.
 * @param {string[]} pieces
 * @param {number[]} special positions of special tokens
 * @returns {string[]}
 */
export function displayTokens(pieces, special = []) {
  const verbatim = new Set(special);
  const toBytes = isByteLevel(pieces, verbatim) ? bytesOfLetters : bytesOfText;
  const bytes = pieces.map((piece, n) => (verbatim.has(n) ? [] : toBytes(piece)));
  return decodeJointly(bytes).map((text, n) => (verbatim.has(n) ? pieces[n] : stripSpaceMarkers(text)));
}

/** Escape control characters and marks that change the direction of text. @param {string} text */
export function escapeControls(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    if ("\u200c\u200d".includes(character)) return character; // joiners shape Persian and Indic words
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return ESCAPES[character] ?? (code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`);
  });
}

/**
 * Byte-level BPE writes only letters of its alphabet, some of them from U+0100 on.
 * @param {string[]} pieces
 * @param {Set<number>} verbatim
 */
function isByteLevel(pieces, verbatim) {
  let hasShifted = false;
  for (const [n, piece] of pieces.entries()) {
    if (verbatim.has(n)) continue;
    for (const letter of piece) {
      if (!BYTE_LETTERS.has(letter)) return false;
      hasShifted ||= letter >= "\u0100";
    }
  }
  return hasShifted;
}

/** @param {string} piece */
function bytesOfLetters(piece) {
  return [...piece].map((letter) => BYTE_LETTERS.get(letter) ?? 0);
}

/** Encode text as UTF-8, with byte tokens such as <0xE7> as the bytes they stand for. @param {string} piece */
function bytesOfText(piece) {
  const parts = piece.split(/<0x([0-9A-Fa-f]{2})>/); // text at even indices, hexadecimal at odd ones
  return parts.flatMap((part, n) => (n % 2 ? [parseInt(part, 16)] : [...new TextEncoder().encode(part)]));
}

/**
 * Decode the bytes of all pieces together; a character belongs to the piece it starts in.
 * @param {number[][]} pieces
 */
function decodeJointly(pieces) {
  const owners = pieces.flatMap((piece, n) => piece.map(() => n));
  const bytes = Uint8Array.from(pieces.flat());
  const texts = pieces.map(() => "");
  for (let offset = 0; offset < bytes.length; ) {
    const length = characterLength(bytes[offset]);
    const character = decodeCharacter(bytes.subarray(offset, offset + length));
    texts[owners[offset]] += character ?? "\ufffd";
    offset += character === null ? 1 : length;
  }
  return texts.map((text, n) => text || (pieces[n].length ? CONTINUATION : ""));
}

/** @param {number} leadByte */
function characterLength(leadByte) {
  if (leadByte < 0x80) return 1;
  return leadByte < 0xe0 ? 2 : leadByte < 0xf0 ? 3 : 4;
}

/** @param {Uint8Array} bytes */
function decodeCharacter(bytes) {
  if (bytes.length === 1 && bytes[0] < 0x80) return String.fromCharCode(bytes[0]);
  try {
    return UTF8.decode(bytes);
  } catch {
    return null;
  }
}

/** @param {string} text */
function stripSpaceMarkers(text) {
  return text.replace(/^[▁ ]+|[▁ ]+$/gu, "") || (text ? "▁" : "");
}
