"""Tokens as a reader wants to see them: bytes decoded to characters, space markers removed."""

import re
from collections.abc import Collection, Sequence

CONTINUATION = "…"  # a piece that only continues the character of the piece before
SPACE_MARKERS = "▁ "
_BYTE_FALLBACK = re.compile("<0x([0-9A-Fa-f]{2})>")  # of SentencePiece


def _byte_alphabet() -> dict[str, int]:
    """Return GPT-2's characters for bytes: printable bytes stand for themselves."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_ALPHABET = _byte_alphabet()
_UNPRINTABLE = {c for c in BYTE_ALPHABET if c >= "\u0100"}  # among them "Ġ", the space


def display_tokens(pieces: Sequence[str], special: Collection[int] = ()) -> tuple[str, ...]:
    """Decode each piece to text; a character of several pieces goes to the first of them.

    Pieces are byte-level BPE if all their characters are of GPT-2's byte alphabet, and one of
    them stands for an unprintable byte, such as "Ġ". Spaces around a piece are removed.

    Args:
        pieces: tokens as strings, all of one text.
        special: positions of special tokens, which stay as they are.

    Example:
        >>> display_tokens(["<s>", "▁cat", "<0xE7>", "<0x8C>", "<0xAB>"], special={0})
        ('<s>', 'cat', '猫', '…', '…')
    """
    to_bytes = _byte_level_bytes if _is_byte_level(pieces, special) else _text_bytes
    parts = [b"" if n in special else to_bytes(piece) for n, piece in enumerate(pieces)]
    return tuple(
        piece if n in special else _strip_space(text)
        for n, (piece, text) in enumerate(zip(pieces, _decode(parts), strict=True))
    )


def _is_byte_level(pieces: Sequence[str], special: Collection[int]) -> bool:
    used = {c for n, piece in enumerate(pieces) if n not in special for c in piece}
    return bool(used & _UNPRINTABLE) and used <= BYTE_ALPHABET.keys()


def _byte_level_bytes(piece: str) -> bytes:
    return bytes(BYTE_ALPHABET[character] for character in piece)


def _text_bytes(piece: str) -> bytes:
    """Encode a piece, with the byte of each byte-fallback token such as <0xE6>."""
    parts = _BYTE_FALLBACK.split(piece)  # text and hexadecimal digits alternate
    return b"".join(
        bytes.fromhex(part) if n % 2 else part.encode("utf-8", "surrogatepass")
        for n, part in enumerate(parts)
    )


def _decode(parts: Sequence[bytes]) -> list[str]:
    """Decode the bytes of all pieces together; a character goes to the piece of its first byte."""
    owners = [n for n, part in enumerate(parts) for _ in part]
    texts = [""] * len(parts)
    position = 0
    for character in b"".join(parts).decode("utf-8", "surrogateescape"):
        is_invalid = "\udc80" <= character <= "\udcff"  # a byte that is not UTF-8
        texts[owners[position]] += "\ufffd" if is_invalid else character
        position += len(character.encode("utf-8", "surrogateescape"))
    return [text or (CONTINUATION if part else "") for text, part in zip(texts, parts, strict=True)]


def _strip_space(text: str) -> str:
    """Remove spaces around a text; a piece that is only space is shown as "▁"."""
    return text.strip(SPACE_MARKERS) or ("▁" if text else "")
