"""Checks of the values of a trace; each raises RegardError with what was expected and found."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real

from regard._support.text import shorten
from regard.errors import RegardError
from regard.trace.quantization import Array


def is_index(value: object) -> bool:
    """Return whether a value is an integer, 0 or greater; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def is_number(value: object) -> bool:
    """Return whether a value is a real number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_pieces(pieces: Sequence[object]) -> None:
    """Require a sequence of strings, and not one string."""
    if isinstance(pieces, str) or not all(isinstance(piece, str) for piece in pieces):
        actual = pieces if isinstance(pieces, str) else list(pieces)[:3]
        raise RegardError(
            f"pieces must be a list of strings, but it is {shorten(actual)}; pass one batch item "
            "at a time, and token ids as strings"
        )


def check_length(name: str, values: Sequence[object] | None, expected: int) -> None:
    """Require one value per piece."""
    if values is not None and len(values) != expected:
        raise RegardError(f"{name} must have one item per piece, {expected}, not {len(values)}")


def check_positions(positions: Sequence[object], count: int) -> None:
    """Require positions of pieces."""
    for position in positions:
        if not is_index(position) or position >= count:  # type: ignore[operator]
            raise RegardError(
                f"special and padding must be positions from 0 to {count - 1}, "
                f"but one is {shorten(position)}"
            )


def check_items(
    name: str, values: Sequence[object] | None, is_valid: Callable[[object], bool], expected: str
) -> None:
    """Require that every value is valid or None."""
    invalid = [value for value in values or () if value is not None and not is_valid(value)]
    if invalid:
        raise RegardError(
            f"{name} must be {expected} or None, but one is {shorten(invalid[0], 40)}"
        )


def check_rows(rows: object) -> None:
    """Require one of the two ways to name rows."""
    if rows not in ("output", "input"):
        raise RegardError(f"rows must be 'output' or 'input', but it is {shorten(rows, 40)}")


def check_list_name(map_name: str, axis: str, name: object) -> None:
    """Require the name of a token list."""
    if not isinstance(name, str):
        raise RegardError(
            f"{axis} of {map_name} must be the name of a token list, but it is {shorten(name, 40)}"
        )


def check_heads(map_name: str, heads: Sequence[object], count: int) -> None:
    """Require one head index per kept head."""
    if len(heads) != count or not all(map(is_index, heads)):
        raise RegardError(
            f"heads of {map_name} must be {count} head indices, but they are {str(heads)[:80]}"
        )


def check_shape(map_name: str, name: str, values: Array | None, shape: tuple[int, ...]) -> None:
    """Require an array to have a shape, if there is one."""
    if values is not None and values.shape != shape:
        raise RegardError(
            f"{name} of {map_name} must have shape {shape}, but its shape is {values.shape}"
        )


def check_ndims(map_name: str, top_keys: Array, tiles: Array, received: Array) -> None:
    """Require (head, query, rank), (head, row, column) and (head, key)."""
    for name, values, ndim in (
        ("top_keys", top_keys, 3),
        ("tiles", tiles, 3),
        ("received", received, 2),
    ):
        if values.ndim != ndim:
            raise RegardError(
                f"{name} of {map_name} must have {ndim} axes, but its shape is {values.shape}"
            )


def check_top_keys(map_name: str, top_keys: Array, keys: int) -> None:
    """Require indices of keys."""
    if top_keys.size and not 0 <= top_keys.min() <= top_keys.max() < keys:
        raise RegardError(
            f"top_keys of {map_name} must be from 0 to {keys - 1}, but one is {int(top_keys.max())}"
        )


def check_tiles(map_name: str, tiles: Array, shape: tuple[int, int, int]) -> None:
    """Require at least one tile, and at most one per query and key."""
    heads, queries, keys = shape
    rows, columns = tiles.shape[1:]
    fits = 1 <= rows <= max(1, queries) and 1 <= columns <= max(1, keys)
    if tiles.shape[0] != heads or not fits:
        raise RegardError(
            f"tiles of {map_name} must have shape ({heads}, 1 to {queries}, 1 to {keys}), but "
            f"their shape is {tiles.shape}"
        )


def length_hint(expected: int, actual: int) -> str:
    """Guess why a token list has the wrong length."""
    if abs(expected - actual) <= 2:
        if expected > actual:
            return "is a start or end token (BOS, EOS) missing?"
        return (
            "is a start or end token (BOS, EOS), or the last token of a generation, in the list, "
            "but not in the model's input?"
        )
    if expected > actual:
        return "was the input padded? Then the list must have the padding, marked as such"
    return "does the list have padding, or more than one item of the batch?"
