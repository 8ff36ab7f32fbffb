"""Counts with their nouns, in messages and reports."""


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
