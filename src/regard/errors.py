"""What a user can repair, said in one sentence."""

from collections.abc import Collection
from difflib import get_close_matches


class RegardError(ValueError):
    """A mistake in a file, a setting or a name that the reader of the message can repair."""


def unknown_name(kind: str, name: str, known: Collection[str]) -> RegardError:
    """Say that no `kind` is called `name`, and offer the nearest that is."""
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(sorted(known))
    return RegardError(f"no {kind} is called {name!r}.{hint} Choose from: {choices}.")
