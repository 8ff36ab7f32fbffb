"""Checks of arguments that several packages take: integers, sizes and probabilities."""

from numbers import Integral

from regard.errors import RegardError


def to_integer(name: str, value: int) -> int:
    """Return an integer, also one of numpy, as an `int`; raise TypeError for anything else.

    Example:
        >>> to_integer("beam_size", 5.0)
        Traceback (most recent call last):
        TypeError: beam_size must be an integer, but it is 5.0
    """
    if type(value) is int:
        return value
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, but it is {value!r}")
    return int(value)


def check_positive(**sizes: int | None) -> None:
    """Raise RegardError for a size below 1, TypeError for no integer; None is not checked.

    Example:
        >>> check_positive(width=12, key_width=0)
        Traceback (most recent call last):
        regard.errors.RegardError: key_width must be 1 or more, but it is 0
    """
    for name, size in sizes.items():
        if size is not None and to_integer(name, size) < 1:
            raise RegardError(f"{name} must be 1 or more, but it is {size}")


def check_dropout(dropout: float) -> None:
    """Raise RegardError unless this is a probability.

    Example:
        >>> check_dropout(1.5)
        Traceback (most recent call last):
        regard.errors.RegardError: dropout must be a probability from 0 to 1, but it is 1.5
    """
    if not 0 <= dropout <= 1:
        raise RegardError(f"dropout must be a probability from 0 to 1, but it is {dropout}")
