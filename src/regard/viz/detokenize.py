"""Pieces as a reader wants them: bytes told as whole characters, marks of a space left out."""

import re
from collections.abc import Collection, Sequence

GOES_ON = "…"  # stands for a piece that only continues the character of the piece before
SPACES = "▁ "
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")  # SentencePiece, for signs it does not know


def _alphabet() -> dict[str, int]:
    """Give GPT-2's letters for bytes: printable ones are themselves, the others follow U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


LETTERS = _alphabet()
_SHIFTED = {letter for letter in LETTERS if letter >= "\u0100"}  # "Ġ" is the space


def display_tokens(pieces: Sequence[str], special: Collection[int] = ()) -> tuple[str, ...]:
    """Tell each piece as text; a character made of several pieces stands at the first of them.

    Byte-level pieces are known by a letter such as "Ġ" and by being of that alphabet throughout.
    A space in front of a piece is left out. Special pieces stay as they are.
    """
    as_bytes = _spell if _is_byte_level(pieces, special) else _unescape
    parts = [b"" if n in special else as_bytes(piece) for n, piece in enumerate(pieces)]
    return tuple(
        piece if n in special else _without_space(text)
        for n, (piece, text) in enumerate(zip(pieces, _told(parts), strict=True))
    )


def _is_byte_level(pieces: Sequence[str], special: Collection[int]) -> bool:
    used = {letter for n, piece in enumerate(pieces) if n not in special for letter in piece}
    return bool(used & _SHIFTED) and used <= LETTERS.keys()


def _spell(piece: str) -> bytes:
    return bytes(LETTERS[letter] for letter in piece)


def _unescape(piece: str) -> bytes:
    """Encode a piece, and put bytes for what is written as <0xE6>."""
    found = _BYTE.split(piece)  # text and numbers by turns
    return b"".join(
        bytes.fromhex(part) if n % 2 else part.encode("utf-8", "surrogatepass")
        for n, part in enumerate(found)
    )


def _told(parts: Sequence[bytes]) -> list[str]:
    """Decode the bytes of all pieces together, and give each character to the first it is in."""
    owners = [n for n, part in enumerate(parts) for _ in part]
    told = [""] * len(parts)
    place = 0
    for letter in b"".join(parts).decode("utf-8", "surrogateescape"):
        length = len(letter.encode("utf-8", "surrogateescape"))
        broken = "\udc80" <= letter <= "\udcff"  # a byte of no character
        told[owners[place]] += "\ufffd" if broken else letter
        place += length
    return [text or (GOES_ON if part else "") for text, part in zip(told, parts, strict=True)]


def _without_space(text: str) -> str:
    """Leave out the spaces around a text; if there is nothing else, show one."""
    return text.strip(SPACES) or ("▁" if text else "")
