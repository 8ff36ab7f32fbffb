"""TOML files of settings, read within limits."""

import tomllib
from pathlib import Path
from typing import Any

from regard._support.files import describe_os_error
from regard._support.reading import decode_utf8, read_bounded, strip_byte_order_mark
from regard.errors import RegardError

MAX_DOTS = 100  # in a line
MAX_BYTES = 1 << 16  # all settings take 3 KB


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings, for `RunConfig.update` to check.

    Raises:
        RegardError: if it cannot be read, is not TOML, or is no regular file of at most 64 KiB.
    """
    try:
        data = strip_byte_order_mark(read_bounded(path, MAX_BYTES), path)
    except OSError as problem:
        reason = describe_os_error(problem)
        raise RegardError(f"cannot read the settings in {path}: {reason}") from problem
    return parse_toml(decode_utf8(data, path), path)


def parse_toml(text: str, name: object) -> dict[str, Any]:
    """Parse TOML; raise RegardError if it is not, or if a key has hundreds of parts."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:  # the parser's memory is quadratic in them
            raise RegardError(
                f"{name} must have at most {MAX_DOTS} dots in a line, but line {number} has "
                f"{line.count('.'):,}"
            )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise RegardError(f"{name} must be TOML, but it is nested too deeply") from None
    except ValueError as problem:  # also raised for an integer of thousands of digits
        raise RegardError(f"{name} must be TOML, but it is not: {problem}") from problem
