"""Text in terminal columns: truncation, centring, wrapping, and two texts side by side.

Widths are those of `rich.cells`: two columns for a Chinese character, none for a combining mark.
"""

from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text


def truncate(text: str, width: int) -> str:
    """Truncate a text to a number of columns, with an ellipsis at its end."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def pad(text: str, width: int) -> str:
    """Truncate or pad a text at its right to exactly a number of columns."""
    return set_cell_size(truncate(text, width), width)


def centre(text: str, width: int) -> str:
    """Truncate or pad a text on both sides to exactly a number of columns."""
    text = truncate(text, width)
    return set_cell_size(" " * ((width - cell_len(text)) // 2) + text, width)


def wrap(text: str, width: int, max_lines: int) -> list[str]:
    """Wrap a text into lines, at spaces where it has some; the last line may be truncated."""
    lines = [line.plain.rstrip() for line in Text(text).wrap(Console(), width)]
    if len(lines) > max_lines:
        lines[max_lines - 1] = truncate(lines[max_lines - 1] + " …", width)
    return lines[:max_lines]


def stack_characters(text: str) -> list[str]:
    """Split a text into what stands on one line each if written downwards, marks included."""
    characters: list[str] = []
    for character in text:
        if characters and cell_len(character) == 0:
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def display_width(line: str) -> int:
    """Return the columns of a line, not counting its ANSI colour codes."""
    return Text.from_ansi(line).cell_len


def side_by_side(left: str, right: str, gap: int = 4) -> str:
    r"""Put one text to the right of another, line by line, at least `gap` columns apart.

    Both may have ANSI colours.

    Example:
        >>> print(side_by_side("a\nlong", "1\n2", gap=2))
        a     1
        long  2
    """
    left_lines, right_lines = left.splitlines(), right.splitlines()
    width = gap + max(map(display_width, left_lines), default=0)
    return "\n".join(
        f"{one}{' ' * (width - display_width(one))}{other}" if other else one
        for one, other in zip_longest(left_lines, right_lines, fillvalue="")
    )
