"""Traces in files: JSON that holds no code, refused with a sentence where it cannot be read."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.trace.quantize import Array, pack, unpack
from regard.trace.record import Look, Reduced, Tokens, Trace

FORMAT, VERSION = "regard trace", 1

UNPACKED_UP_TO = 2**30  # bytes of JSON: 1 GiB; a small file can be packed from much more

_WRONG = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, IndexError)

# the coarse picture has 256 shades; all else is kept to more than four decimals
_REDUCED = {
    "top": 32,
    "top_weights": 16,
    "left_out": 16,
    "tiles": 8,
    "entropy": 16,
    "received": 16,
    "distance": 16,
}


def save(trace: Trace, path: Path) -> None:
    """Write a trace to a file, compressed if its name ends in .gz."""
    try:
        # half of a pair of surrogates becomes an escape, which is JSON for the same
        data = to_json(trace).encode("utf-8", errors="backslashreplace")
    except RegardError as error:
        raise RegardError(f"cannot write {path}: {error}") from error
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # the same trace makes the same file
    try:
        path.write_bytes(data)
    except OSError as error:
        raise RegardError(f"cannot write {path}: {error.strerror}") from error


def load_trace(path: Path | str) -> Trace:
    """Read a trace that `save` wrote."""
    path = Path(path)
    text = text_of(path)
    try:
        return from_json(text)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from error


def text_of(path: Path) -> str:
    """Give the JSON of a file, unpacked if it is compressed."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":  # compressed, whatever its name
            data = _unpacked(data, path)
        return data.decode("utf-8")
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RegardError(
            f"{path} is not a trace, or a part of one: it cannot be unpacked ({error})"
        ) from error
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error


def _unpacked(data: bytes, path: Path) -> bytes:
    with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
        text = packed.read(UNPACKED_UP_TO + 1)
    if len(text) > UNPACKED_UP_TO:
        raise RegardError(
            f"{path} must unpack to at most {UNPACKED_UP_TO} bytes of JSON, but it is more; "
            "gunzip would unpack it to a file without a limit"
        )
    return text


def to_json(trace: Trace) -> str:
    """Write a trace as JSON, in the form that `regard.trace` describes."""
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    record |= {"title": _text(trace.title, "title"), "model": _text(trace.model, "model")}
    record["tokens"] = {}
    for name, tokens in trace.tokens.items():
        with _part(f"tokens {name!r}", "written"):
            record["tokens"][_text(name, "name")] = _tokens_out(tokens)
    if trace.gold is not None:
        record["gold"] = [list(link) for link in trace.gold]
    record["looks"] = []
    for look in trace.looks:
        with _part(f"look {look.name!r}", "written"):
            record["looks"].append(_look_out(look))
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Trace:
    """Read a trace from JSON; whatever is wrong with it becomes one sentence."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise RegardError(
            f"a trace must be JSON, but it breaks off or errs at character {error.pos} of "
            f"{len(text)}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        raise RegardError(f"a trace must be JSON that can be read, but: {error}") from error
    _check_version(record)
    tokens, looks = {}, []
    with _part("it as a whole"):
        for name, list_ in record["tokens"].items():
            with _part(f"tokens {name!r}"):
                tokens[_text(name, "name")] = _tokens_in(list_)
        for number, look in enumerate(record["looks"]):
            with _part(f"look {number}"):
                looks.append(_look_in(look))
        return Trace(
            tokens=tokens,
            looks=tuple(looks),
            title=_text(record.get("title", ""), "title"),
            model=_text(record.get("model", ""), "model"),
            gold=_pairs(record.get("gold")),
        )


@contextmanager
def _part(part: str, done: str = "read") -> Iterator[None]:
    """Say in which part of a trace something is wrong, and what."""
    try:
        yield
    except KeyError as error:
        raise RegardError(f"the trace lacks {error.args[0]!r} in {part}") from error
    except _WRONG as error:
        raise RegardError(f"the trace cannot be {done}: {part}: {error}") from error


def _check_version(record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RegardError(f'this is JSON, but not a trace: a trace says "format": "{FORMAT}"')
    if record.get("version") != VERSION:
        raise RegardError(
            f"the trace has version {record.get('version')!r}, but this regard reads version "
            f"{VERSION}; make it anew, or install the regard that wrote it"
        )


def _tokens_out(tokens: Tokens) -> dict[str, Any]:
    record: dict[str, Any] = {"pieces": [_text(piece, "pieces") for piece in tokens.pieces]}
    if tokens.words is not None:
        record["words"] = list(tokens.words)
    record |= {"special": list(tokens.special), "padding": list(tokens.padding)}
    likely = _finite(tokens.log_probabilities)
    if likely is not None:
        record["log_probabilities"] = [None if p is None else round(float(p), 4) for p in likely]
    return record


def _tokens_in(record: dict[str, Any]) -> Tokens:
    words, likely = record.get("words"), record.get("log_probabilities")
    return Tokens(
        _texts(record["pieces"]),
        None if words is None else tuple(words),
        tuple(record.get("special", ())),
        tuple(record.get("padding", ())),
        _finite(None if likely is None else tuple(likely)),
    )


def _finite(likely: Any) -> Any:
    """Refuse what JSON cannot hold; anything else is refused by the record."""
    for p in likely or ():
        if isinstance(p, float) and not math.isfinite(p):
            raise ValueError(f"log_probabilities must be finite or null, but one is {p}")
    return likely


def _text(text: Any, name: str) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a text, but {str(text)[:40]!r} came")
    return text


def _texts(pieces: Any) -> tuple[str, ...]:
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ValueError(f"pieces must be a list of texts, but {str(pieces)[:40]!r} came")
    return tuple(_text(piece, "pieces") for piece in pieces)


def _look_out(look: Look) -> dict[str, Any]:
    names = ("name", "kind", "queries", "keys", "call", "place")
    record: dict[str, Any] = {name: getattr(look, name) for name in names}
    record |= {"name": _text(look.name, "name"), "place": _text(look.place, "place")}
    record |= {"heads": list(look.heads), "sizes": list(look.sizes)}
    if look.weights is not None:
        record["weights"] = pack(look.weights)
    if look.reduced is not None:
        record["reduced"] = {
            name: pack(getattr(look.reduced, name), bits) for name, bits in _REDUCED.items()
        }
    if look.value_norms is not None:
        record["value_norms"] = pack(look.value_norms)
    return record


def _look_in(record: dict[str, Any]) -> Look:
    reduced = record.get("reduced")
    return Look(
        name=_text(record["name"], "name"),
        kind=record["kind"],
        queries=record["queries"],
        keys=record["keys"],
        weights=_numbers(record, "weights"),
        reduced=None if reduced is None else _reduced_in(reduced),
        heads=tuple(record.get("heads", ())),
        call=int(record.get("call", 0)),
        place=_text(record.get("place", ""), "place"),
        value_norms=_numbers(record, "value_norms"),
    )


def _reduced_in(record: dict[str, Any]) -> Reduced:
    return Reduced(**{name: unpack(record[name], name, name == "top") for name in _REDUCED})


def _numbers(record: dict[str, Any], name: str) -> Array | None:
    return unpack(record[name], name) if name in record else None


def _pairs(links: Any) -> tuple[tuple[int, int], ...] | None:
    return None if links is None else tuple((int(source), int(target)) for source, target in links)
