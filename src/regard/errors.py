"""The exception for what a user can fix, and a hint for misspelled names."""

from collections.abc import Collection
from difflib import get_close_matches


class RegardError(ValueError):
    """Raised for whatever a user can fix: an argument, a file, a setting or a name.

    The message names the argument, the expected value, the actual value and a fix. The command
    line prints it as one line.
    """


def unknown_name(kind: str, name: str, known: Collection[str]) -> RegardError:
    """Return the error for a name that does not exist, with the nearest one that does.

    Args:
        kind: what the name is of, such as "preset".
        name: the name that was given.
        known: the names there are.

    Example:
        >>> str(unknown_name("kernel", "boxar", ["boxcar", "gaussian"]))
        "no kernel is called 'boxar'. Did you mean 'boxcar'? Choose from: boxcar, gaussian."
    """
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(sorted(known))
    return RegardError(f"no {kind} is called {name!r}.{hint} Choose from: {choices}.")
