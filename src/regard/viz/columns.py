"""How many columns of a terminal a text takes, and text cut or padded to a number of them."""

from unicodedata import category, east_asian_width


def columns(text: str) -> int:
    """Count the columns of a text: two for a Chinese sign, none for a combining mark."""
    return sum(map(_columns_of, text))


def cut(text: str, room: int) -> str:
    """Shorten a text to a number of columns, and show it by an ellipsis."""
    if _fitting(text, room) == len(text):
        return text
    return text[: _fitting(text, room - 1)] + "…"


def wrapped(text: str, room: int, lines: int) -> list[str]:
    """Break a text into lines of so many columns, at spaces if it has some; cut the last."""
    found: list[str] = []
    while len(found) < lines - 1 and (end := _fitting(text, room)) < len(text):
        space = text.rfind(" ", 1, end + 1)
        line = text[: max(end, 1) if space < 0 else space]
        found.append(line.rstrip())
        text = text[len(line) :].lstrip()
    return [*found, cut(text, room)]


def left(text: str, room: int) -> str:
    """Cut or pad a text to a number of columns, at the left."""
    text = cut(text, room)
    return text + " " * (room - columns(text))


def centred(text: str, room: int) -> str:
    """Cut or pad a text to a number of columns, in the middle."""
    text = cut(text, room)
    before = (room - columns(text)) // 2
    return left(" " * before + text, room)


def letters(text: str) -> list[str]:
    """Split a text into what is written one below the other: marks stay with their letter."""
    found: list[str] = []
    for sign in text:
        if found and _columns_of(sign) == 0:
            found[-1] += sign
        else:
            found.append(sign)
    return found


def _fitting(text: str, room: int) -> int:
    """Count the signs at the start of a text that fit into a number of columns."""
    taken = 0
    for place, sign in enumerate(text):
        taken += _columns_of(sign)
        if taken > room:
            return place
    return len(text)


def _columns_of(sign: str) -> int:
    if category(sign) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if east_asian_width(sign) in {"W", "F"} else 1
