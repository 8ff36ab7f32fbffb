"""Checksums and identities: no changed bit and no exchanged file goes unnoticed."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard._support.strict_json import parse_object
from regard.errors import RegardError

DIGITS = 64  # hexadecimal digits of a whole SHA-256

_KNOWN_FROM = {"run": "settings.json", "tokenizer": "tokenizer.json"}

# the last member of the object, and nothing after it but its end
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]+)"\n?\}\n\Z')
_MAX_MATCH_BYTES = 100  # a key, at most 64 digits and an end


Identity = Mapping[str, str | int]
"""What a file belongs to, such as the id of a run, a tokenizer or a step."""


class ChecksumError(ValueError):
    """A document without a checksum, or with a wrong one."""


def dumps(
    content: Mapping[str, Any], *, key: str = "", indent: int | None = None, digits: int = DIGITS
) -> str:
    r"""Return a JSON object with a last member "checksum", of all bytes before its value.

    Args:
        content: the object; not empty.
        key: what the document belongs to, such as the id of a run. It is part of the checksum but
            not of the document, which is refused with another key.
        indent: as for `json.dumps`; without it the document is one line.
        digits: how many of the 64 digits to write.

    Example:
        >>> dumps({"step": 7}, digits=8)
        '{"step": 7, "checksum": "d64a0b40"}\n'
    """
    separator, end = (" ", "}\n") if indent is None else (f"\n{' ' * indent}", "\n}\n")
    text = json.dumps(content, ensure_ascii=False, indent=indent).removesuffix("}").rstrip()
    text = f'{text},{separator}"checksum": "'
    return f'{text}{_digest(text.encode(), key)[:digits]}"{end}'


def loads(data: bytes, *, key: str = "", digits: int = DIGITS) -> dict[str, Any]:
    """Return the object that `dumps` wrote, without its checksum.

    Raises:
        ChecksumError: if a byte was changed, or the key is another one.

    Example:
        >>> loads(dumps({"step": 7}).encode())
        {'step': 7}
        >>> loads(dumps({"step": 7}).encode().replace(b"7", b"8"))
        Traceback (most recent call last):
        regard._support.checksums.ChecksumError: its checksum is wrong
    """
    match = _CHECKSUM.search(data, max(len(data) - _MAX_MATCH_BYTES, 0))
    if match is None:
        raise ChecksumError("it has no checksum")
    if match[1].decode() != _digest(data[: match.start(1)], key)[:digits]:
        raise ChecksumError("its checksum is wrong")
    content = parse_object(data, "it", finite=False)
    del content["checksum"]
    return content


def check_identity(path: Path, actual: Identity, expected: Identity) -> None:
    """Raise RegardError for a file that names another run, tokenizer or step than expected.

    Example:
        >>> check_identity(Path("a.json"), {"run": "7f"}, {"run": "7f", "step": 3})
        >>> check_identity(Path("a.json"), {"run": "7f"}, {"run": "80"})
        Traceback (most recent call last):
        regard.errors.RegardError: a.json must be of run 80, but it is of run 7f: it or ...
    """
    for name, value in expected.items():
        if actual.get(name, value) != value:
            known_from = _KNOWN_FROM.get(name)
            which = "it" if known_from is None else f"it or {known_from}"
            raise RegardError(
                f"{path} must be of {name} {value}, but it is of {name} {actual[name]}: {which} "
                "was copied from elsewhere"
            )


def _digest(data: bytes, key: str) -> str:
    digest = sha256(f"{key}\n".encode() if key else b"")
    digest.update(data)
    return digest.hexdigest()
