"""Strict JSON for files that others may have written: one reading of every text, or a refusal.

Python's parser accepts more than JSON is: of two equal keys it takes the last, it knows NaN and
Infinity, turns 1e400 into infinity, and stops at deep nesting with a RecursionError.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from regard._support.reading import decode_utf8, read_bounded
from regard._support.text import shorten
from regard.errors import RegardError

MAX_DEPTH = 32  # lists and objects within one another
MAX_DIGITS = 20  # of an integer: those of 64 bits

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path, max_bytes: int) -> dict[str, Any]:
    """Read a file that holds a JSON object.

    Args:
        path: the file; it must be a regular file.
        max_bytes: its largest size.

    Raises:
        RegardError: if it is larger, is not UTF-8, or is not strict JSON; see `parse_json`.
        OSError: if it cannot be read.
    """
    return parse_object(read_bounded(path, max_bytes), path)


def parse_object(data: str | bytes, name: object, *, finite: bool = True) -> dict[str, Any]:
    """Parse a JSON object as `parse_json` does; anything else is an error."""
    value = parse_json(data, name, finite=finite)
    if not isinstance(value, dict):
        raise RegardError(f"{name} must be a JSON object, but it is {_describe(value)}")
    return value


def parse_json(
    data: str | bytes, name: object, *, finite: bool = True, surrogates: bool = False
) -> Any:
    """Parse JSON strictly.

    Args:
        data: the text, or its UTF-8.
        name: what to call it in errors.
        finite: refuse numbers that are not finite: NaN, Infinity, 1e400.
        surrogates: accept strings with lone surrogates, which UTF-8 cannot represent.

    Raises:
        RegardError: if it is not JSON, has two equal keys in an object, is nested deeper than
            `MAX_DEPTH` or has an integer of more than `MAX_DIGITS` digits.

    Example:
        >>> parse_json('{"a": 1, "a": 2}', "the file")
        Traceback (most recent call last):
        regard.errors.RegardError: the file must have each key once, but 'a' is there twice
    """
    text = decode_utf8(data, name) if isinstance(data, bytes) else data
    hooks = _Hooks(name)
    try:
        value = json.loads(
            text,
            object_pairs_hook=hooks.build_object,
            parse_constant=hooks.refuse if finite else None,
            parse_float=hooks.parse_float if finite else None,
            parse_int=hooks.parse_int,
        )
    except json.JSONDecodeError as error:
        raise RegardError(
            f"{name} must be JSON, but it is invalid or truncated at character {error.pos} of "
            f"{len(text)}: {error.msg}"
        ) from error
    except RecursionError:
        raise _too_deep(name) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value, name)
    if not surrogates and _SURROGATE_ESCAPE.search(text):
        _check_unicode(value, name)
    return value


class _Hooks:
    """What the parser calls for objects and numbers."""

    def __init__(self, name: object) -> None:
        self._name = name

    def build_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) == len(pairs):
            return content
        keys = set[str]()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise RegardError(
            f"{self._name} must have each key once, but {shorten(twice)} is there twice"
        )

    def parse_float(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self.refuse(text)
        return value

    def parse_int(self, text: str) -> int:
        if len(text) > MAX_DIGITS:
            raise RegardError(
                f"{self._name} must have integers of at most {MAX_DIGITS} digits, but one has "
                f"{len(text)}"
            )
        return int(text)

    def refuse(self, text: str) -> NoReturn:
        raise RegardError(f"{self._name} must have finite numbers, but one is {text[:40]}")


def _check_depth(value: Any, name: object) -> None:
    level = [value] if isinstance(value, list | dict) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep(name)
        level = [item for one in level for item in _items(one) if isinstance(item, list | dict)]


def _items(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def _too_deep(name: object) -> RegardError:
    return RegardError(f"{name} must be nested at most {MAX_DEPTH} deep, but it is deeper")


def _check_unicode(value: Any, name: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise RegardError(
            f"{name} must be Unicode text, but it has the lone surrogate U+{code:04X}"
        ) from None


def _describe(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
