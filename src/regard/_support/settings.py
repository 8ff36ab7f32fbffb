"""Values of settings: converted to the type of their field, and checked against their range."""

from dataclasses import fields
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from regard._support.text import shorten
from regard.errors import RegardError, unknown_name

_TYPE_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}


def coerce_fields(name: str, section: Any) -> None:
    """Convert each setting of a frozen section to the type of its field: an int to a float."""
    for one in fields(section):
        value = coerce(f"{name}.{one.name}", getattr(section, one.name), one.type)
        object.__setattr__(section, one.name, value)


def coerce(name: str, value: Any, annotation: Any) -> Any:
    """Return the value as the type of the setting, or raise an error that names the type."""
    if get_origin(annotation) is Literal:
        if value in get_args(annotation):
            return value
        given = value if isinstance(value, str) else shorten(value)
        raise unknown_name(f"choice for {name}", given, get_args(annotation))
    if get_origin(annotation) is UnionType:
        if value is None or value == "none":
            return None
        return coerce(name, value, next(t for t in get_args(annotation) if t is not NoneType))
    if get_origin(annotation) is tuple:
        types = get_args(annotation)
        if isinstance(value, list | tuple) and len(value) == len(types):
            return tuple(coerce(name, *pair) for pair in zip(value, types, strict=True))
        raise RegardError(f"{name} must be {len(types)} numbers, but it is {shorten(value)}")
    if type(value) is annotation:
        return value
    is_number = isinstance(value, Real) and not isinstance(value, bool)  # of numpy, too
    if annotation is float and is_number:
        return _to_float(name, value)
    if annotation is int and is_number and isinstance(value, Integral):
        return int(value)
    raise RegardError(f"{name} must be {_TYPE_NAMES[annotation]}, but it is {shorten(value)}")


def _to_float(name: str, value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        raise RegardError(f"{name} must be finite, but it is {shorten(value)}") from None


def check_range(name: str, section: object, **ranges: tuple[int, int | float]) -> None:
    """Require low <= value <= high; NaN fails."""
    for key, (low, high) in ranges.items():
        value = getattr(section, key)
        if not value >= low:
            raise RegardError(f"{name}.{key} must be {low} or more, but it is {_shorten(value)}")
        if not value <= high:
            raise RegardError(f"{name}.{key} must be at most {high}, but it is {_shorten(value)}")


def check_finite(name: str, section: object, *keys: str) -> None:
    """Require finite values."""
    for key in keys:
        value = getattr(section, key)
        if not isfinite(value):
            raise RegardError(f"{name}.{key} must be finite, but it is {value}")


def check_fraction(name: str, section: object, *keys: str) -> None:
    """Require 0 <= value < 1."""
    for key in keys:
        value = getattr(section, key)
        if not 0 <= value < 1:
            raise RegardError(f"{name}.{key} must be from 0 to below 1, but it is {value}")


def _shorten(value: int | float) -> str:
    """Format a number that may have hundreds of digits."""
    if isinstance(value, int) and value.bit_length() > 10_000:  # slow, or refused, to convert
        return "an integer of thousands of digits"
    text = str(value)
    return text if len(text) < 30 else f"{text[:10]}… of {len(text)} digits"
