"""Two pictures of text side by side, whatever their colours and the width of their signs."""

import re
from itertools import zip_longest

from regard.viz.columns import columns

STEERING = re.compile("\x1b\\[[0-9;]*m")  # colours: they take no columns


def side_by_side(left: str, right: str, gap: int = 4) -> str:
    """Put one text to the right of another, line by line, at least `gap` columns apart."""
    first, second = left.splitlines(), right.splitlines()
    room = gap + max(map(shown, first), default=0)
    return "\n".join(
        f"{a}{' ' * (room - shown(a))}{b}" if b else a
        for a, b in zip_longest(first, second, fillvalue="")
    )


def shown(line: str) -> int:
    """Count the columns that a line takes, without its colours."""
    return columns(STEERING.sub("", line))
