"""The exception for what a user can fix, and a hint for misspelled names."""

from collections.abc import Collection
from difflib import SequenceMatcher, get_close_matches

from regard._support.text import escape_control, shorten, shorten_middle

__all__ = ["RegardError", "SharedError", "unknown_name", "wrong_type"]

MAX_MESSAGE_CHARACTERS = 1000
MIN_LIKENESS = 0.6  # of a name that is suggested instead of another: difflib's default
MAX_CHOICES = 20  # all named in a message: there are 13 scores
NEAREST_CHOICES = 12  # named of more; a model may have hundreds of modules


class RegardError(ValueError):
    """Raised for whatever a user can fix: an argument, a file, a setting or a name.

    The message names the argument, the expected value, the actual value and a fix. It is one line
    of limited length: control characters, which a path or a file may bring into it, are escaped.
    The command line prints it.

    Example:
        >>> import regard
        >>> try:
        ...     regard.SearchConfig(beam_size=0)
        ... except regard.RegardError as error:
        ...     print(error)
        search.beam_size must be 1 or more, but it is 0
    """

    def __init__(self, message: object = "") -> None:
        line = shorten_middle(str(message).rstrip("\n"), MAX_MESSAGE_CHARACTERS)
        super().__init__(shorten_middle(escape_control(line), MAX_MESSAGE_CHARACTERS))


class SharedError(RegardError):
    """An error of one process of a run that all its processes raise; one per host prints it."""


def wrong_type(name: str, expected: str, value: object) -> TypeError:
    """Return the error for an argument of a wrong type.

    Args:
        name: the argument.
        expected: what it must be.
        value: what it is.

    Example:
        >>> str(wrong_type("path", "a path", 5))
        'path must be a path, but it is of type int'
    """
    actual = f"of type {type(value).__name__}"
    if value is None:
        actual = "None"
    elif isinstance(value, type):
        actual = f"the class {value.__name__}"
    return TypeError(f"{name} must be {expected}, but it is {actual}")


def unknown_name(kind: str, name: object, known: Collection[str]) -> RegardError:
    """Return the error for a name that does not exist, with the nearest one that does.

    Args:
        kind: what the name is of, such as "preset".
        name: the name that was given.
        known: the names there are.

    Example:
        >>> str(unknown_name("kernel", "boxar", ["boxcar", "gaussian"]))
        "no kernel is called 'boxar'. Did you mean 'boxcar'? Choose from: boxcar, gaussian."
    """
    near = _nearest(str(name), known)
    hint = "" if near is None else f" Did you mean {near!r}?"
    names = sorted(known)
    if len(names) > MAX_CHOICES:
        nearest = get_close_matches(str(name), names, n=NEAREST_CHOICES, cutoff=0.0)
        names = [*sorted(nearest), f"and {len(names) - NEAREST_CHOICES} others"]
    choices = ", ".join(names)
    return RegardError(f"no {kind} is called {shorten(name)}.{hint} Choose from: {choices}.")


def _nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like another, or that it abbreviates; None if none is.

    A part of a dotted name, "h.3" of "transformer.h.3", has too few letters to be like it, and so
    have the initials of its last word, "train.lr" of "train.learning_rate".
    """
    ends = sorted((x for x in known if name and x.endswith(f".{name}")), key=len)
    abbreviated = ends or [x for x in known if name and _initials(x) == name]
    alike = [(_likeness(name, x), x) for x in known]
    likeness, nearest = max(alike, default=(0.0, ""))
    if abbreviated:
        return abbreviated[0]
    return nearest if likeness >= MIN_LIKENESS else None


def _initials(name: str) -> str:
    """Return a dotted name with the initials of its last part, if that has several words.

    Example:
        >>> _initials("train.learning_rate")
        'train.lr'
    """
    section, dot, last = name.rpartition(".")
    words = last.split("_")
    return f"{section}{dot}{''.join(word[:1] for word in words)}" if len(words) > 1 else ""


def _likeness(name: str, known: str) -> float:
    """Compare two names from 0 to 1, without the first parts of a dotted name if they are equal."""
    (first, _, rest), (known_first, _, known_rest) = name.partition("."), known.partition(".")
    if rest and known_rest and first == known_first:
        return _likeness(rest, known_rest)
    return SequenceMatcher(None, known, name).ratio()
