"""Text made safe to print, and counts with their nouns, for messages and reports."""

import re
from collections.abc import Mapping, Sequence
from unicodedata import category

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
# Zero-width (non-)joiners shape Persian and Indic words and emoji, and are harmless.
_JOINERS = "\u200c\u200d"
_COLOUR = r"[34]8;(?:5;\d{1,3}|2(?:;\d{1,3}){3})"
_COLOUR_CODE = re.compile(rf"(\x1b\[(?:0|{_COLOUR}(?:;{_COLOUR})?)m)")  # as pictures write them
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_control(text: str, keep: str = "") -> str:
    r"""Escape characters that control a terminal, change text direction or are invalid in XML.

    These are control characters (C0, DEL and C1), format characters such as bidirectional
    overrides, line and paragraph separators, lone surrogates and noncharacters. Escaping twice is
    the same as escaping once.

    Args:
        text: any text.
        keep: control characters that stay, such as a line feed.

    Example:
        >>> print(escape_control("\x1b[31m"))
        \x1b[31m
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if character not in keep and (_is_control(character) or _is_noncharacter(character))
        else character
        for character in text
    )


def escape_drawing(text: str) -> str:
    r"""Escape control characters but line feeds and the colours of a drawing.

    The labels of a drawing are escaped already, with the colour codes in them: this is for what is
    printed around it, such as the path of a file.

    Example:
        >>> escape_drawing("\x1b[48;5;17;38;5;231m0.25\x1b[0m\x1b[2J\n")
        '\x1b[48;5;17;38;5;231m0.25\x1b[0m\\x1b[2J\n'
    """
    parts = _COLOUR_CODE.split(text)  # text and colour codes alternate
    return "".join(
        part if n % 2 else escape_control(part, keep="\n") for n, part in enumerate(parts)
    )


def escape_markdown(text: str) -> str:
    r"""Escape Markdown, HTML and control characters, in a heading or a cell of a table.

    Example:
        >>> escape_markdown("*<b>|\\n")
        '\\*\\<b\\>\\|\\\\n'
    """
    return _MARKDOWN.sub(r"\\\1", escape_control(text))


def shorten(value: object, limit: int = 60) -> str:
    """Return a value's representation in quotes, cut at a number of characters, for a message.

    Example:
        >>> print(shorten("a" * 100, 10))
        'aaaaaaaaa…
    """
    try:
        # of a text only the beginning is represented: it may be as large as a file
        text = repr(value[: limit + 1] if isinstance(value, str) else value)
    except (ValueError, RecursionError):  # of an integer of thousands of digits, or a deep list
        text = "too long to show"
    return text if len(text) <= limit + 2 else f"{text[:limit]}…"


def shorten_middle(text: str, limit: int) -> str:
    """Cut a text in its middle: messages begin with the name of a file and end with the fix.

    Example:
        >>> shorten_middle("abcdefghijkl", 7)
        'abcde…l'
    """
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 1]}…{text[len(text) - tail :]}"


def _is_control(character: str) -> bool:
    return category(character) in _CONTROL_CATEGORIES and character not in _JOINERS


def _is_noncharacter(character: str) -> bool:
    """Return whether a code point is one of Unicode's 66 noncharacters."""
    return 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE


def count(number: int | float, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the singular for 1.

    Args:
        number: the number; an integer gets thousands separators.
        noun: the noun in the singular, with or without words before it.
        plural: the plural, if it is not the singular with an s.

    Example:
        >>> count(1, "pair"), count(28_625, "training pair"), count(1.5, "minute")
        ('1 pair', '28,625 training pairs', '1.5 minutes')
    """
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{text} {noun if number == 1 else plural or noun + 's'}"


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows of cells as a text table with aligned columns.

    Example:
        >>> print(format_table([("head", "role"), ("0", "sink"), ("11", "previous")]))
        head  role
        0     sink
        11    previous
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def format_settings(settings: Mapping[str, object]) -> str:
    """Format settings as keyword arguments, for the representation of an object.

    Example:
        >>> format_settings({"kernel": "boxcar", "bandwidth": 1.0})
        "kernel='boxcar', bandwidth=1.0"
    """
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
