"""What the numbers of a trace must be, said of those that are not."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real

from regard.trace.quantize import Array


def is_count(number: object) -> bool:
    """Tell whether something is a whole number, 0 or more."""
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= 0


def is_real(number: object) -> bool:
    """Tell whether something is a number."""
    return isinstance(number, Real) and not isinstance(number, bool)


def check_each(
    name: str, given: Sequence[object] | None, fits: Callable[[object], bool], wanted: str
) -> None:
    """Refuse what does not fit; None stands for what is not known."""
    wrong = [one for one in given or () if one is not None and not fits(one)]
    if wrong:
        raise ValueError(f"{name} must be {wanted} or None, but one is {str(wrong[0])[:40]!r}")


def check_ndims(look: str, top: Array, tiles: Array, received: Array) -> None:
    """Refuse what is not (head, query, rank), (head, row, column) and (head, key)."""
    for name, numbers, wanted in (("top", top, 3), ("tiles", tiles, 3), ("received", received, 2)):
        if numbers.ndim != wanted:
            raise ValueError(
                f"{name} of {look} must have {wanted} axes, but its shape is {numbers.shape}"
            )


def check_places(look: str, sizes: tuple[int, int, int], top: Array, tiles: Array) -> None:
    """Refuse keys that are not there, and a picture of no tiles or of more than there are keys."""
    heads, queries, keys = sizes
    if top.size and not 0 <= top.min() <= top.max() < keys:
        raise ValueError(
            f"top of {look} must name keys from 0 to {keys - 1}, but one is {int(top.max())}"
        )
    rows, columns = tiles.shape[1:]
    fits = 1 <= rows <= max(1, queries) and 1 <= columns <= max(1, keys)
    if tiles.shape[0] != heads or not fits:
        raise ValueError(
            f"tiles of {look} must be ({heads}, 1 to {queries}, 1 to {keys}), but their shape is "
            f"{tiles.shape}"
        )


def why(wanted: int, came: int) -> str:
    """Guess what is missing or too much."""
    if abs(wanted - came) <= 2:
        state = "not in the list" if wanted > came else "in the list, but not in the model's input"
        return f": is a start or end token (BOS, EOS) {state}?"
    if wanted > came:
        return ": was the sentence padded? Then padding belongs in the list, marked as padding"
    return ": is there padding in the list, or more than one sentence of the batch?"
